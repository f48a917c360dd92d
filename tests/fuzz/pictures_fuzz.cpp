// floor: corpus
#include <algorithm>

#include "corpus/pictures.h"
#include "fuzz/fuzz.h"

namespace {

/// Reads the first pictures and labels, and the last.
void read_some(const mindpipe::Pictures& pictures) {
  const std::int64_t bytes = pictures.size().bytes();
  MP_CHECK(bytes > 0 && bytes <= (1 << 20), "a picture of {} bytes", bytes);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(bytes));
  for (const std::int64_t index : {std::int64_t{0}, pictures.count() / 2, pictures.count() - 1}) {
    if (index < 0 || index >= pictures.count()) continue;
    pictures.read(index, pixels.data());
    mindpipe::read_or_refuse([&] { pictures.label(index, 10); });
  }
}

}  // namespace

// The bytes are pictures, labels and records in turn.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const auto bytes = mindpipe::text_of(data, size);
  const std::string labels("\0\0\x08\x01\0\0\0\2\1\2", 10),
      pictures("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\1\7\7", 18);
  for (const char* ending : {"", ".gz"}) {
    const std::string idx = folder.write(std::string("a-images-idx3-ubyte") + ending, bytes);
    folder.write(std::string("a-labels-idx1-ubyte") + ending, labels);
    mindpipe::read_or_refuse([&] { read_some(mindpipe::IdxPictures(idx)); });
    folder.write("b-labels-idx1-ubyte", bytes);
    const std::string whole = folder.write("b-images-idx3-ubyte", pictures);
    mindpipe::read_or_refuse([&] { read_some(mindpipe::IdxPictures(whole)); });
    const std::string cifar = folder.write(std::string("batch.bin") + ending, bytes);
    for (const int count : {1, 2})
      mindpipe::read_or_refuse([&] { read_some(mindpipe::CifarPictures(cifar, count)); });
  }
  return 0;
}
