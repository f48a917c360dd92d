#include "core/check.h"
#include "tokenize/byte_tokenizer.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  MP_REQUIRE(path == ByteTokenizer::word, Exit::bad_configuration,
             "{} is no tokenizer that this program reads; name bytes, one token a byte", path);
  return std::make_unique<ByteTokenizer>();
}

}  // namespace mindpipe
