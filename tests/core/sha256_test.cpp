#include "core/sha256.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

std::string of(const std::string& text, std::size_t piece = 1 << 20) {
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += piece)
    sha.add(text.data() + at, std::min(piece, text.size() - at));
  return to_string(sha.end());
}

TEST(Sha256, IsThatOfTheStandardsExamples) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string text(length, 'x');
    for (const std::size_t piece : {1, 7, 63, 64, 65})
      EXPECT_EQ(of(text, piece), of(text)) << length << " by " << piece;
  }
}

}  // namespace
}  // namespace mindpipe
