#include "core/unfinished_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

namespace mindpipe {
namespace {

class UnfinishedFiles : public testing::Test {
 protected:
  UnfinishedFiles() : folder_(testing::TempDir() + "mindpipe_unfinished_" + std::to_string(getpid()) + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~UnfinishedFiles() override { std::filesystem::remove_all(folder_); }

  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ + name); }
  void make(const std::string& name) const { std::ofstream(folder_ + name) << name; }

  std::string folder_;
};

TEST_F(UnfinishedFiles, GoUnlessTheyBecomeWhatTheyWereToBe) {
  {
    UnfinishedFile whole(folder_ + "whole.partial"), half(folder_ + "half.partial");
    make("whole.partial");
    make("half.partial");
    ASSERT_TRUE(whole.becomes(folder_ + "whole"));
    make("whole.partial");  // somebody else's by now
  }
  EXPECT_TRUE(exists("whole"));
  EXPECT_TRUE(exists("whole.partial"));
  EXPECT_FALSE(exists("half.partial"));
}

TEST_F(UnfinishedFiles, ThatCannotGetTheirNameAreStillUnfinished) {
  {
    UnfinishedFile file(folder_ + "a.partial");
    make("a.partial");
    EXPECT_FALSE(file.becomes(folder_ + "nowhere/a"));
    EXPECT_EQ(errno, ENOENT);
  }
  EXPECT_FALSE(exists("a.partial"));
}

TEST_F(UnfinishedFiles, AreRemovedAllAtOnceAndNoneThatIsDone) {
  UnfinishedFile first(folder_ + "first");
  std::optional<UnfinishedFile> second(std::in_place, folder_ + "second"),
      third(std::in_place, folder_ + "third");
  for (const char* name : {"first", "second", "third"}) make(name);
  ASSERT_TRUE(second->becomes(folder_ + "kept"));
  second.reset();
  third.reset();
  make("third");
  remove_unfinished_files();
  EXPECT_FALSE(exists("first"));
  EXPECT_TRUE(exists("kept"));
  EXPECT_TRUE(exists("third"));
}

TEST_F(UnfinishedFiles, MayComeAndGoOnAllThreadsWhileTheyAreRemoved) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = std::to_string(t) + "_" + std::to_string(i);
        UnfinishedFile file(folder_ + name);
        make(name);
      }
    });
  for (int i = 0; i < 200; ++i) remove_unfinished_files();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace mindpipe
