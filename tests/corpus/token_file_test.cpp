#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "corpus/files.h"
#include "corpus/token_file.h"
#include "corpus/token_writer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

std::vector<std::int32_t> whole(const TokenFile& file, std::int64_t document) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(document)));
  file.read(document, 0, file.length(document), tokens.data());
  return tokens;
}
/// The golden index with `bytes` written over it at `offset`.
std::string changed(std::size_t offset, const std::string& hex) {
  std::string idx = golden_idx;
  const std::string bytes = from_hex(hex);
  idx.replace(offset, bytes.size(), bytes);
  return idx;
}
void expect_refused(const std::string& idx, const std::string& sentence) {
  const Folder folder;
  expect_error(Exit::bad_data, "pair.idx: " + sentence, [&] { TokenFile(write_golden(folder, idx)); });
}

TEST(TokenFile, ReadsTheGoldenPair) {
  const Folder folder;
  const TokenFile file(write_golden(folder), 10);
  EXPECT_EQ(file.type(), TokenType::u16);
  EXPECT_EQ(file.count(), 3);
  EXPECT_EQ(file.sequences(), 4);
  EXPECT_EQ(file.tokens(), 9);
  EXPECT_THAT(whole(file, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(whole(file, 1), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(whole(file, 2), ElementsAre(9));
  std::vector<std::int32_t> across(3);
  file.read(1, 1, 3, across.data());
  EXPECT_THAT(across, ElementsAre(5, 6, 7));
  file.read(1, 3, 2, across.data());
  EXPECT_THAT(across, ElementsAre(7, 8, 7));
}

TEST(TokenFile, ReadsAnIndexWithModes) {
  const Folder folder;
  EXPECT_EQ(TokenFile(write_golden(folder, golden_idx + std::string(4, '\0'))).count(), 3);
}

TEST(TokenFile, ReadsEveryWholeNumberType) {
  for (const TokenType type :
       {TokenType::u8, TokenType::i8, TokenType::i16, TokenType::i32, TokenType::i64, TokenType::u16}) {
    const Folder folder;
    const auto size = static_cast<std::size_t>(bytes_of(type));
    std::string bin;
    for (char token = 1; token <= 9; ++token) bin += token + std::string(size - 1, '\0');
    std::string idx = golden_idx;
    idx[17] = static_cast<char>(type);
    for (int s = 0; s < 4; ++s)
      idx[34 + 16 + 8 * s] = static_cast<char>(idx[34 + 16 + 8 * s] / 2 * static_cast<int>(size));
    const TokenFile file(write_golden(folder, idx, bin), 10);
    EXPECT_THAT(whole(file, 1), ElementsAre(4, 5, 6, 7, 8)) << name_of(type);
  }
}

TEST(TokenFile, WritesTheGoldenPair) {
  const Folder folder;
  TokenWriter writer(folder / "made", token_type_for(65499));
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::span all(tokens);
  writer.add(all.subspan(0, 3));
  writer.end_document();
  writer.add(all.subspan(3, 2));
  writer.end_sequence();
  writer.add(all.subspan(5, 1));
  writer.add(all.subspan(6, 2));
  writer.end_document();
  writer.add(all.subspan(8, 1));
  writer.end_document();
  writer.finish();
  EXPECT_EQ(read_file(folder / "made.idx"), golden_idx);
  EXPECT_EQ(read_file(folder / "made.bin"), golden_bin);
}

TEST(TokenFile, IsWrittenIn16BitsBelow65500AndIn32From) {
  EXPECT_EQ(token_type_for(65499), TokenType::u16);
  EXPECT_EQ(token_type_for(65500), TokenType::i32);
  const Folder folder;
  TokenWriter writer(folder / "wide", TokenType::i32, 2);
  writer.add(std::vector<std::int32_t>{70000, 1, 2, 3, 4});
  writer.end_document();
  writer.finish();
  const TokenFile file(folder / "wide", 70001);
  EXPECT_EQ(file.sequences(), 3);  // none longer than two
  EXPECT_THAT(whole(file, 0), ElementsAre(70000, 1, 2, 3, 4));
}

TEST(TokenWriter, LeavesNothingBehindWhenItIsNotFinished) {
  const Folder folder;
  { TokenWriter writer(folder / "half", TokenType::u16); }
  EXPECT_FALSE(std::filesystem::exists(folder / "half.bin"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

TEST(TokenWriter, TakesAwayWhatStandsUnderTheNamesOfUnfinishedFiles) {
  const Folder folder;
  write_file(folder / "kept", "by somebody else");
  for (const char* pipe : {"pair.bin.unfinished", "pair.lengths.unfinished", "pair.idx.unfinished"})
    ASSERT_EQ(mkfifo((folder / pipe).c_str(), 0600), 0);  // which nobody reads
  std::filesystem::create_symlink(folder / "kept", folder / "pair.boundaries.unfinished");
  TokenWriter writer(folder / "pair", TokenType::u16);
  writer.add(std::vector<std::int32_t>{1, 2, 3});
  writer.end_document();
  writer.finish();
  EXPECT_THAT(whole(TokenFile(folder / "pair", 10), 0), ElementsAre(1, 2, 3));
  EXPECT_EQ(std::filesystem::file_size(folder / "kept"), 16u);
}

TEST(TokenWriter, RefusesToOverwriteAndToWriteNowhere) {
  const Folder folder;
  const std::string pair = write_golden(folder);
  expect_error(Exit::cannot_create, "pair.bin: the file exists already (nothing is overwritten)",
               [&] { TokenWriter(pair, TokenType::u16); });
  expect_error(Exit::cannot_create, "nowhere/x.bin.unfinished: the file cannot be created",
               [&] { TokenWriter(folder / "nowhere/x", TokenType::u16); });
  expect_error(Exit::bad_data, "wide.bin: document 0, position 1: token 65536 (expected 0 to 65535", [&] {
    TokenWriter(folder / "wide", TokenType::u16).add(std::vector<std::int32_t>{1, 65536});
  });
}

TEST(TokenFile, RefusesWhatIsNotThere) {
  const Folder folder;
  expect_error(Exit::input_missing, "absent.idx: there is no such file",
               [&] { TokenFile(folder / "absent"); });
  write_file(folder / "lone.idx", golden_idx);
  expect_error(Exit::input_missing, "lone.bin: there is no such file", [&] { TokenFile(folder / "lone"); });
  std::filesystem::create_directory(folder / "folder.idx");
  expect_error(Exit::bad_data, "folder.idx: not an ordinary file", [&] { TokenFile(folder / "folder"); });
}

TEST(TokenFile, RefusesATruncatedIndex) {
  expect_refused("", "the file has 0 bytes (an index begins with 34)");
  expect_refused(golden_idx.substr(0, 33), "the file has 33 bytes (an index begins with 34)");
  expect_refused(golden_idx.substr(0, 60), "offset 18: 4 sequences (the file of 60 bytes has room for 2)");
  expect_refused(golden_idx.substr(0, 113),
                 "offset 26: 4 document boundaries (the file of 113 bytes has room for 3)");
  expect_refused(
      golden_idx + "x",
      "the file has 115 bytes (expected 114, or 118 with modes, for 4 sequences and 4 document boundaries)");
}

TEST(TokenFile, RefusesAnotherKindOfFile) {
  expect_refused(changed(0, "00"), "offset 0: the first nine bytes are not MMIDIDX and two zeros");
  expect_refused(changed(9, "02"), "offset 9: version 2 (expected 1)");
  expect_refused(changed(17, "00"), "offset 17: dtype 0 (expected 1 to 5 or 8)");
  expect_refused(changed(17, "09"), "offset 17: dtype 9 (expected 1 to 5 or 8)");
  expect_refused(changed(17, "07"),
                 "offset 17: dtype 7, float32 (expected 1 to 5 or 8: tokens are whole numbers)");
}

TEST(TokenFile, RefusesCountsThatWouldTakeAllMemory) {
  expect_refused(changed(18, "ffffffffffffffff"),
                 "offset 18: 18446744073709551615 sequences (the file of 114 bytes has room for 6)");
  expect_refused(changed(26, "ffffffffffffff7f"),
                 "offset 26: 9223372036854775807 document boundaries (the file of 114 bytes has room for 4)");
  expect_refused(changed(26, "0000000000000000"),
                 "offset 26: 0 document boundaries (expected documents + 1)");
}

TEST(TokenFile, RefusesSequencesThatLieOutsideTheFile) {
  expect_refused(changed(38, "ffffffff"), "offset 38: sequence 1 has length -1 (expected 0 or more)");
  expect_refused(changed(46, "02000000"),
                 "offset 74: sequence 3 lies at byte 16 with 2 tokens of 2 bytes (expected to end within the "
                 "18 bytes of ");
  expect_refused(changed(50, "feffffffffffffff"),
                 "offset 50: sequence 0 lies at byte -2 with 3 tokens of 2 bytes");
  expect_refused(changed(50, "ffffffffffffff7f"),
                 "offset 50: sequence 0 lies at byte 9223372036854775807 with 3 tokens");
  expect_refused(changed(46, "03000000").replace(74, 1, 1, '\0'),
                 "offset 46: 11 tokens up to sequence 3 (expected at most 9, what ");
  const Folder folder;
  expect_error(Exit::bad_data, "offset 74: sequence 3 lies at byte 16",
               [&] { TokenFile(write_golden(folder, golden_idx, golden_bin.substr(0, 17))); });
}

TEST(TokenFile, RefusesBoundariesThatDoNotAscend) {
  expect_refused(changed(82, "01"), "offset 82: the first document boundary is 1 (expected 0)");
  expect_refused(changed(98, "00"),
                 "offset 98: document boundary 2 is 0 (expected 1 or more: boundaries ascend)");
  expect_refused(changed(106, "03"),
                 "offset 106: the last document boundary is 3 (expected 4, the number of sequences)");
  expect_refused(changed(90, "ffffffffffffffff"),
                 "offset 90: document boundary 1 is -1 (expected 0 or more: boundaries ascend)");
}

TEST(TokenFile, RefusesATokenBeyondTheVocabularyWhenItIsRead) {
  const Folder folder;
  const TokenFile file(write_golden(folder), 7);
  std::vector<std::int32_t> tokens(5);
  file.read(1, 0, 3, tokens.data());
  expect_error(Exit::bad_data,
               "pair.bin: document 1, position 3: token 7 (expected 0 to 6, the vocabulary has 7)",
               [&] { file.read(1, 0, 5, tokens.data()); });
  std::string idx = changed(17, "03");
  const Folder other;
  const TokenFile negative(write_golden(other, idx, from_hex("ffff") + golden_bin.substr(2)));
  expect_error(Exit::bad_data, "document 0, position 0: token -1 (expected 0 to 2147483647",
               [&] { negative.read(0, 0, 3, tokens.data()); });
}

TEST(TokenFile, EveryMutationOfAnIndexIsReadOrRefused) {
  const Folder folder;
  std::mt19937 random(1);
  int read = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string idx = golden_idx;
    switch (random() % 4) {
      case 0:
        idx.resize(random() % (idx.size() + 1));
        break;
      case 1:
        idx.append(random() % 40, static_cast<char>(random()));
        break;
      default:
        break;
    }
    for (unsigned n = random() % 4; n > 0 && !idx.empty(); --n) {
      char& byte = idx[random() % idx.size()];
      switch (random() % 3) {
        case 0:
          byte = static_cast<char>(random());
          break;
        case 1:
          byte = static_cast<char>(byte ^ (1 << random() % 8));
          break;
        default:
          byte = random() % 2 ? '\x7f' : '\xff';
          break;
      }
    }
    try {
      const TokenFile file(write_golden(folder, idx), random() % 2 ? 10 : 0);
      for (std::int64_t d = 0; d < file.count(); ++d) whole(file, d);
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace mindpipe
