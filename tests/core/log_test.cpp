#include "core/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace mindpipe {
namespace {

/// Collects what the log says while this object lives.
class Listener {
 public:
  Listener() : file_(std::tmpfile()) { set_log_stream(file_); }
  ~Listener() {
    set_log_rank(0);
    set_log_stream(stderr);
    std::fclose(file_);
  }
  std::string heard() {
    std::rewind(file_);
    std::string text(1 << 16, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  std::FILE* file_;
};

TEST(Log, OnlyRankZeroSpeaks) {
  Listener listener;
  info("{} ranks", 4);
  set_log_rank(1);
  info("unheard");
  warning("unheard");
  Progress(0, 2).update(1, "unheard");
  set_log_rank(0);
  warning("threads share a processor");
  EXPECT_EQ(listener.heard(), "4 ranks\nwarning: threads share a processor\n");
}

TEST(Log, ProgressIsPlainLinesWithoutATerminal) {
  Listener listener;
  Progress progress(0, 1000);
  for (int step = 1; step <= 1000; ++step) progress.update(step, "loss 2.5");
  EXPECT_THAT(listener.heard(), testing::MatchesRegex("step 1/1000 . loss 2.5 . [0-9.]+ [mu]?s used\n"
                                                      "step 1000/1000 . loss 2.5 . [0-9.]+ [mu]?s used\n"));
}

TEST(Log, ProgressOnATerminalNamesTheTimeUsedAndTheTimeToCome) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(ours, 0);
  ASSERT_EQ(grantpt(ours), 0);
  ASSERT_EQ(unlockpt(ours), 0);
  std::FILE* terminal = std::fopen(ptsname(ours), "w");
  ASSERT_NE(terminal, nullptr);
  set_log_stream(terminal);
  {
    Progress progress(0, 3);
    progress.update(1, "loss 2.5");
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    progress.update(2, "loss 2.4");
  }
  set_log_stream(stderr);
  std::fclose(terminal);
  std::string heard;
  char letter = 0;
  while (read(ours, &letter, 1) == 1) heard += letter;  // to the end of what the terminal was told
  close(ours);
  EXPECT_THAT(heard,
              testing::ContainsRegex("step 2/3 . loss 2.4 . [0-9.]+ [mu]?s used . ETA [0-9.]+ [mu]?s"));
}

}  // namespace
}  // namespace mindpipe
