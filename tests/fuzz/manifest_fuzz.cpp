// floor: io
#include "core/crc32c.h"
#include "fuzz/fuzz.h"
#include "io/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] { mindpipe::parse_manifest(text, "manifest.json"); });
  // With the CRC that belongs to it, as who knows the format would write it.
  const std::string sealed =
      fmt::format("{},\n\"crc32c\": \"{:08x}\"\n}}\n", text, mindpipe::crc32c(text.data(), text.size()));
  mindpipe::read_or_refuse([&] {
    const mindpipe::Manifest manifest = mindpipe::parse_manifest(sealed, "manifest.json");
    MP_CHECK(manifest.progress.first_sample(manifest.progress.step, 1) >= manifest.progress.step,
             "a step sees samples of before");
    mindpipe::parse_manifest(mindpipe::text_of(manifest), "manifest.json");
  });
  return 0;
}
