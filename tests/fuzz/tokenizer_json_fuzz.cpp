// floor: tokenize
#include "fuzz/fuzz.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {
namespace {

/// Texts that a tokenizer which was read has to turn into ids below its vocabulary and back.
constexpr std::string_view texts[] = {"", "The cat's 1234  hats\r\n\t",
                                      " <s>\u00e9\u0301 \u4f60\u597d\uff0c \U0001f469\u200d\U0001f467 a b",
                                      "\xff\xc0\xaf\xe2\x82 x"};

void read_and_use(const std::string& path) {
  const auto tokenizer = load_tokenizer(path);
  const auto encoder = tokenizer->encoder();
  for (const std::string_view text : texts) {
    const auto ids = encoder->encode(text);
    for (const TokenId id : ids)
      MP_CHECK(id >= 0 && id < tokenizer->vocabulary(), "id {} of {}", id, tokenizer->vocabulary());
    tokenizer->decode(ids, true);
    tokenizer->with_template(ids, ids);
  }
}

}  // namespace
}  // namespace mindpipe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const std::string path = folder.write("tokenizer.json", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] { mindpipe::read_and_use(path); });
  return 0;
}
