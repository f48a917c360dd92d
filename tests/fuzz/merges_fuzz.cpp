// floor: tokenize
#include "fuzz/read_and_use.h"
#include "tokenize/vocabulary.h"

namespace mindpipe {
namespace {

/// A vocabulary of GPT-2's kind: letters of all bytes, and some tokens that merges may make of them.
std::string vocabulary() {
  Json ids = Json::object();
  int id = 0;
  for (int byte = 0; byte < 256; ++byte) ids[letter_of_byte(static_cast<unsigned char>(byte))] = id++;
  for (const char* token : {"th", "he", "the", "at", "cat", "ha", "hat", "hats", "12", "123", "1234",
                            "\u0120\u0120", "\u0120h", "\u0120ha", "<|endoftext|>"})
    ids[token] = id++;
  return ids.dump();
}

}  // namespace
}  // namespace mindpipe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  static const std::string path = folder.write("vocab.json", mindpipe::vocabulary());
  folder.write("merges.txt", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] { mindpipe::read_and_use(path); });
  return 0;
}
