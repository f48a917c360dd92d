#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus/files.h"

namespace mindpipe {
namespace {

TEST(NewFile, TakesAwayWhatStandsUnderItsTemporaryName) {
  const Folder folder;
  const std::string path = folder / "status.json", temporary = fmt::format("{}.{}.partial", path, ::getpid());
  ASSERT_EQ(mkfifo(temporary.c_str(), 0600), 0);  // which nobody reads
  replace_file(path, "whole");
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
  EXPECT_FALSE(std::filesystem::exists(temporary));
}

}  // namespace
}  // namespace mindpipe
