// floor: io
#include <algorithm>

#include "fuzz/fuzz.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const std::string path = folder.write("model.safetensors", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] {
    const mindpipe::SafetensorsFile file(path);
    for (const mindpipe::StoredTensor& tensor : file.tensors()) {
      MP_CHECK(tensor.count() <= static_cast<std::int64_t>(8 * size), "{} elements of {} bytes",
               tensor.count(), size);
      mindpipe::read_or_refuse([&] { file.floats(tensor.name); });
      mindpipe::read_or_refuse([&] { file.integers(tensor.name); });
    }
  });
  return 0;
}
