#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mindpipe {
namespace {

std::uint32_t crc_of(const std::string& bytes) { return crc32c(bytes.data(), bytes.size()); }

/// Bytes that repeat nowhere soon.
std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

/// Bit by bit, as the definition has it.
std::uint32_t plainly(const std::string& bytes) {
  std::uint32_t state = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78u : 0);
  }
  return ~state;
}

TEST(Crc32c, IsTheOneThatOthersCompute) {
  EXPECT_EQ(crc_of("123456789"), 0xe3069283u);
  EXPECT_EQ(crc_of(""), 0u);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8a9136aau) << "of RFC 3720";
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62a8ab43u) << "of RFC 3720";
  for (const std::size_t count : {1, 7, 8, 63, 64, 65, 1000, 4099})
    EXPECT_EQ(crc_of(some_bytes(count)), plainly(some_bytes(count))) << count;
}

TEST(Crc32c, GoesOnFromThatOfTheBytesBefore) {
  const std::string bytes = some_bytes(300);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
    ASSERT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)), crc_of(bytes))
        << cut;
}

TEST(Crc32c, OfTwoPiecesJoinedIsThatOfTheWholeWhereverItIsCut) {
  const std::string bytes = some_bytes(300);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
    ASSERT_EQ(joined_crc32c(crc_of(bytes.substr(0, cut)), crc_of(bytes.substr(cut)), bytes.size() - cut),
              crc_of(bytes))
        << cut;
}

TEST(Crc32c, OfManyPiecesJoinedInAnyOrderOfJoiningIsThatOfTheWhole) {
  const std::string bytes = some_bytes(5'000'011);
  for (const std::size_t size : {1'000'003, 4096, 65'537}) {
    std::uint32_t from_the_front = 0, from_the_back = 0;
    std::uint64_t behind = 0;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += size) pieces.push_back(bytes.substr(at, size));
    for (const std::string& piece : pieces)
      from_the_front = joined_crc32c(from_the_front, crc_of(piece), piece.size());
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      from_the_back = joined_crc32c(crc_of(*piece), from_the_back, behind);
      behind += piece->size();
    }
    EXPECT_EQ(from_the_front, crc_of(bytes)) << size;
    EXPECT_EQ(from_the_back, crc_of(bytes)) << size;
  }
}

/// n zeros behind m zeros, by doubling: lengths that no memory holds are joined, too.
TEST(Crc32c, JoinsPiecesOfAnyLength) {
  std::uint32_t zeros = crc_of(std::string(1, '\0'));
  std::uint64_t count = 1;
  for (; count < (std::uint64_t{1} << 24); count *= 2) zeros = joined_crc32c(zeros, zeros, count);
  EXPECT_EQ(zeros, crc_of(std::string(count, '\0')));
  for (; count < (std::uint64_t{1} << 62); count *= 2) zeros = joined_crc32c(zeros, zeros, count);
  const std::uint32_t one = crc_of("x");
  EXPECT_EQ(joined_crc32c(joined_crc32c(one, zeros, count), zeros, count),
            joined_crc32c(one, joined_crc32c(zeros, zeros, count), 2 * count));
}

}  // namespace
}  // namespace mindpipe
