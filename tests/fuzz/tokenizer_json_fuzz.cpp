// floor: tokenize
#include "fuzz/read_and_use.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const std::string path = folder.write("tokenizer.json", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] { mindpipe::read_and_use(path); });
  return 0;
}
