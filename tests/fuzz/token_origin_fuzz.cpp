// floor: corpus
#include "corpus/token_origin.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  folder.write("pair.json", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] {
    const auto origin = mindpipe::read_origin(folder / "pair");
    MP_CHECK(origin && origin->tokens >= 0 && origin->documents >= 0, "numbers below 0 were taken");
  });
  mindpipe::read_or_refuse([&] { mindpipe::require_tokens_of(folder / "pair", "bytes", "00"); });
  return 0;
}
