#include "io/checked_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <random>

#include "core/crc32c.h"
#include "io/checkpoint_sample.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

constexpr std::int64_t block = Manifest::block;

/// The CRCs of a file's blocks, from its bytes.
std::vector<std::uint32_t> crcs_of(const std::string& bytes) {
  std::vector<std::uint32_t> crcs;
  for (std::size_t at = 0; at < bytes.size(); at += block)
    crcs.push_back(crc32c(bytes.data() + at, std::min<std::size_t>(block, bytes.size() - at)));
  return crcs;
}

std::string random_bytes(std::size_t count) {
  std::mt19937_64 random(5);
  std::string bytes(count, '\0');
  for (std::size_t at = 0; at < count; at += 8) {
    const std::uint64_t word = random();
    bytes.replace(at, std::min<std::size_t>(8, count - at), reinterpret_cast<const char*>(&word),
                  std::min<std::size_t>(8, count - at));
  }
  return bytes;
}

class CheckedWriterOfFile : public CheckpointFolder {
 protected:
  std::string file() const { return path("state.h5"); }
  void make_file(std::int64_t bytes) const {
    put("state.h5", "");
    std::filesystem::resize_file(file(), static_cast<std::uintmax_t>(bytes));
  }
};

/// Writes from memory that lies in its pages as the file does, of which whole pages go straight to the
/// device, and from other memory, of which none do.
class CheckedWriterOfMemory : public CheckedWriterOfFile, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(InPages, CheckedWriterOfMemory, testing::Values(0, 16));

TEST_P(CheckedWriterOfMemory, TheCrcsOfItsPiecesAreThoseOfTheFilesBlocks) {
  const std::string bytes = random_bytes(2 * block + 12'345);
  std::vector<char> room(bytes.size() + 2 * file_page);
  char* const memory =
      room.data() + file_page - reinterpret_cast<std::uintptr_t>(room.data()) % file_page + GetParam();
  std::copy(bytes.begin(), bytes.end(), memory);
  make_file(static_cast<std::int64_t>(bytes.size()));
  // Three ranks in turn; cuts at odd places, at a block's edge, beside it, and a piece over a whole block.
  const std::vector<std::int64_t> cuts{0,
                                       1,
                                       4097,
                                       block - 1,
                                       block,
                                       block + 1,
                                       5'000'003 + block,
                                       2 * block + 7,
                                       2 * block + 8,
                                       static_cast<std::int64_t>(bytes.size())};
  std::vector<CheckedWriter> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.emplace_back(file());
  for (std::size_t i = cuts.size() - 1; i > 0; --i)
    ranks[i % 3].write(cuts[i - 1], memory + cuts[i - 1], cuts[i] - cuts[i - 1]);
  std::vector<WrittenPiece> pieces;
  for (CheckedWriter& rank : ranks) {
    rank.finish();
    EXPECT_EQ(rank.problem(), "");
    for (const WrittenPiece& piece : rank.pieces()) {
      EXPECT_EQ(piece.offset / block, (piece.offset + piece.bytes - 1) / block) << "a piece crosses an edge";
      pieces.push_back(piece);
    }
  }
  EXPECT_TRUE(bytes_of(file()) == bytes);
  EXPECT_EQ(block_crcs(pieces, static_cast<std::int64_t>(bytes.size())), crcs_of(bytes));
}

TEST_F(CheckedWriterOfFile, WhatSomebodyElseWroteCountsAsItIsToBe) {
  const std::string bytes = random_bytes(block + 1999);
  const auto size = static_cast<std::int64_t>(bytes.size());
  put("state.h5", bytes);
  CheckedWriter writer(file());
  writer.note_as_it_is(0, 1000);
  writer.note(1000, bytes.data() + 1000, block);
  writer.note_as_it_is(block + 1000, size - block - 1000);
  writer.finish();
  EXPECT_EQ(writer.problem(), "");
  EXPECT_EQ(block_crcs(writer.pieces(), size), crcs_of(bytes));
}

TEST_F(CheckedWriterOfFile, OtherBytesThatComeBackAreAProblem) {
  const std::string bytes = random_bytes(3000);
  make_file(3000);
  CheckedWriter writer(file());
  writer.write(0, bytes.data(), 3000);
  std::string other = bytes;
  other[1234] = static_cast<char>(other[1234] ^ 1);
  put("other", other);
  std::filesystem::copy_file(path("other"), file(), std::filesystem::copy_options::overwrite_existing);
  writer.finish();
  EXPECT_EQ(writer.problem(), file() + ": reading back failed: other bytes came back");
}

TEST_F(CheckedWriterOfFile, AFileThatIsShorterThanItWasIsAProblem) {
  make_file(3000);
  CheckedWriter writer(file());
  writer.write(0, random_bytes(3000).data(), 3000);
  std::filesystem::resize_file(file(), 2999);
  writer.finish();
  EXPECT_THAT(writer.problem(), HasSubstr(file() + ": reading failed"));
}

TEST_F(CheckedWriterOfFile, TheFirstProblemIsKeptAndNothingFollowsIt) {
  CheckedWriter writer(file());
  EXPECT_EQ(writer.problem(), file() + ": opening failed: No such file or directory");
  make_file(0);
  writer.write(0, "abc", 3);
  writer.note_as_it_is(0, 5);
  writer.take_problem("another");
  writer.finish();
  EXPECT_EQ(writer.problem(), file() + ": opening failed: No such file or directory");
  EXPECT_EQ(bytes_of(file()), "");

  CheckedWriter sound(file());
  sound.take_problem("");
  EXPECT_EQ(sound.problem(), "");
  sound.take_problem("HDF5 cannot");
  sound.write(0, "abc", 3);
  EXPECT_EQ(sound.problem(), "HDF5 cannot");
  EXPECT_EQ(bytes_of(file()), "");
}

TEST_F(CheckedWriterOfFile, ALinkIsNotFollowed) {
  put("elsewhere", "abc");
  std::filesystem::create_symlink("elsewhere", file());
  CheckedWriter writer(file());
  writer.write(0, "x", 1);
  EXPECT_THAT(writer.problem(), HasSubstr("opening failed"));
  EXPECT_EQ(bytes_of(path("elsewhere")), "abc");
}

TEST_F(CheckedWriterOfFile, AFullDeviceIsAProblemThatNamesTheFile) {
  CheckedWriter writer("/dev/full");
  writer.write(0, "abc", 3);
  EXPECT_EQ(writer.problem(), "/dev/full: writing failed: No space left on device");
}

std::string complaint(const std::vector<WrittenPiece>& pieces, std::int64_t file_bytes) {
  return refusal([&] { block_crcs(pieces, file_bytes); }, Exit::internal);
}

TEST(BlockCrcs, AByteThatNobodyWroteIsFound) {
  EXPECT_THAT(complaint({{0, 10, 1}, {11, 9, 2}}, 20),
              HasSubstr("byte 10 of a checkpoint was written by nobody"));
  EXPECT_THAT(complaint({{1, 19, 1}}, 20), HasSubstr("byte 0 of a checkpoint was written by nobody"));
  EXPECT_THAT(complaint({{0, 19, 1}}, 20), HasSubstr("19 of the 20 bytes"));
  EXPECT_THAT(complaint({}, 20), HasSubstr("0 of the 20 bytes"));
  EXPECT_THAT(complaint({{0, block, 1}, {block + 1, 10, 2}}, block + 11), HasSubstr("by nobody"));
}

TEST(BlockCrcs, AByteThatWasWrittenTwiceIsFound) {
  EXPECT_THAT(complaint({{0, 10, 1}, {9, 11, 2}}, 20), HasSubstr("byte 9 of a checkpoint was written twice"));
  EXPECT_THAT(complaint({{0, 10, 1}, {0, 10, 1}, {10, 10, 2}}, 20), HasSubstr("written twice"));
  EXPECT_THAT(complaint({{0, 20, 1}, {5, 2, 2}}, 20), HasSubstr("byte 5 of a checkpoint was written twice"));
  EXPECT_THAT(complaint({{0, 21, 1}}, 20), HasSubstr("21 of the 20 bytes"));
}

TEST(BlockCrcs, AFileOfNoBytesHasNone) { EXPECT_TRUE(block_crcs({}, 0).empty()); }

}  // namespace
}  // namespace mindpipe
