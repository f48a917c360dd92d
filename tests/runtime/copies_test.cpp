#include "runtime/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/plain_backend.h"

namespace mindpipe {
namespace {

constexpr std::int64_t part = std::int64_t{1} << 20;

class CopiesOfAHost : public testing::Test {
 protected:
  static Tensor whole(std::vector<std::byte>& of) {
    return {of.data(), {static_cast<std::int64_t>(of.size())}, DType::u8};
  }

  Memory memory_{Memory::Kind::host};
  PlainBackend backend_{memory_};
  Copies copies_{backend_};
};

TEST_F(CopiesOfAHost, MoveOnByAPartAtATime) {
  std::vector<std::byte> from(2 * part + 5, std::byte{7}), to(from.size());
  const std::int64_t number = copies_.begin("stash", whole(from), whole(to));
  EXPECT_EQ(to[0], std::byte{0}) << "a start copies nothing";
  copies_.progress();
  EXPECT_EQ(to[part - 1], std::byte{7});
  EXPECT_EQ(to[part], std::byte{0});
  EXPECT_THAT(copies_.describe(number), testing::HasSubstr("1048576 of 2097157 bytes"));
  copies_.progress();
  EXPECT_FALSE(copies_.done(number));
  copies_.progress();
  EXPECT_TRUE(copies_.done(number));
  EXPECT_EQ(to, from);
}

TEST_F(CopiesOfAHost, AreMadeWholeWhereTheyHaveToEnd) {
  std::vector<std::byte> from(2 * part, std::byte{7}), to(from.size());
  int calls = 0;
  backend_.on_progress([&] { ++calls; });
  const std::int64_t number = copies_.begin("stash", whole(from), whole(to));
  copies_.finish();
  EXPECT_TRUE(copies_.done(number));
  EXPECT_EQ(to, from);
  EXPECT_LE(calls, 1);
}

TEST_F(CopiesOfAHost, EndInTheOrderInWhichTheyBegan) {
  std::vector<std::byte> from(part + 1, std::byte{1}), other(1, std::byte{2}), to(part + 1), place(1);
  const std::int64_t first = copies_.begin("stash", whole(from), whole(to)),
                     second = copies_.begin("stash", whole(other), whole(place));
  for (int parts = 0; parts < 2; ++parts) {
    EXPECT_FALSE(copies_.done(first));
    EXPECT_EQ(place[0], std::byte{0});
    copies_.progress();
  }
  EXPECT_TRUE(copies_.done(first));
  EXPECT_FALSE(copies_.done(second));
  copies_.progress();
  EXPECT_TRUE(copies_.done(second));
  EXPECT_EQ(place[0], std::byte{2});
  copies_.progress();  // there is none left
}

}  // namespace
}  // namespace mindpipe
