// floor: corpus
#include <vector>

#include "corpus/token_file.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  folder.write("pair.bin", std::string(64, '\1'));
  folder.write("pair.idx", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] {
    const mindpipe::TokenFile file(folder / "pair");
    for (std::int64_t document = 0; document < file.count(); ++document) {
      const std::int64_t length = file.length(document);
      MP_CHECK(length >= 0 && length <= 64, "a document of {} tokens in 64 bytes", length);
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(length));
      mindpipe::read_or_refuse([&] { file.read(document, 0, length, tokens.data()); });
    }
  });
  return 0;
}
