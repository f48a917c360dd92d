#include "tokenize/byte_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpus/files.h"
#include "tokenize/utf8.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

TEST(ByteTokenizer, GivesEveryByteBack) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  const auto tokenizer = load_tokenizer("bytes");
  const auto tokens = tokenizer->encoder()->encode(bytes);
  EXPECT_EQ(tokens[200], 200);
  EXPECT_EQ(tokenizer->decode(tokens), bytes);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 256, 'b'}), "ab");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 256}, true), "a<end>");
  expect_error(Exit::bad_data, "token 1 is 257, and the tokenizer bytes has the ids 0 to 256", [&] {
    tokenizer->decode(std::vector<TokenId>{1, 257});
  });
  EXPECT_EQ(tokenizer->special().end, 256);
  EXPECT_EQ(tokenizer->vocabulary(), 257);
}

TEST(StreamDecoder, GivesWholeCharactersAtATime) {
  const auto tokenizer = load_tokenizer("bytes");
  StreamDecoder decoder(*tokenizer);
  std::vector<std::string> pieces;
  for (const unsigned char byte : std::string("a\u00e9\U0001f600\xff\xe2\x82"))
    pieces.push_back(decoder.add(byte));
  EXPECT_THAT(pieces, ElementsAre("a", "", "\u00e9", "", "", "", "\U0001f600", "\xff", "", ""));
  EXPECT_EQ(decoder.finish(), "\xe2\x82");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(Utf8, KnowsCharactersAndWhatIsNone) {
  const std::string all = "a\u00e9\u20ac\U0010ffff";
  EXPECT_EQ(first_character(all).code, U'a');
  EXPECT_EQ(first_character(all.substr(3)).code, 0x20acU);
  EXPECT_EQ(first_character(all.substr(6)).code, 0x10ffffU);
  for (const std::string_view none :
       {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82", "\xff"})
    EXPECT_EQ(invalid_prefix(none), none.size()) << none.size();
  EXPECT_EQ(invalid_prefix("\xe2\x82z"), 2U);
  EXPECT_FALSE(ends_within_character("\xed\xa0"));
  EXPECT_TRUE(ends_within_character("a\xf0\x9f"));
  EXPECT_FALSE(ends_within_character(all));
}

}  // namespace
}  // namespace mindpipe
