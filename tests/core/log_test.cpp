#include "core/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "core/progress.h"
#include "core/terminal.h"

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

TEST(Log, ShowsNoByteThatMovesATerminal) {
  Listener listener;
  info("left out: {}", "a\x1b[2J\r, \xff");
  EXPECT_EQ(listener.heard(), "left out: a\\x1b[2J\\x0d, \\xff\n");
}

/// The steps that have a line: "step 20/1000 | loss 2.5 | 12.1 ms used" names 20.
std::vector<int> steps_named(const std::string& text) {
  std::vector<int> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, testing::MatchesRegex("step [0-9]+/1000 . loss 2.5 . [0-9.]+ [mu]?s used( . ETA .*)?"));
    steps.push_back(std::stoi(line.substr(5)));
  }
  return steps;
}

TEST(Log, ProgressIsFewPlainLinesWithoutATerminal) {
  Listener listener;
  Progress progress(0, 1000);
  for (int step = 1; step <= 1000; ++step) progress.update(step, "loss 2.5");
  EXPECT_THAT(steps_named(listener.heard()), testing::ElementsAre(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000));
}

TEST(Log, ProgressOfARunThatGoesOnCountsFromThere) {
  Listener listener;
  Progress progress(700, 1000);
  for (int step = 701; step <= 720; ++step) progress.update(step, "loss 2.5");
  EXPECT_THAT(steps_named(listener.heard()), testing::ElementsAre(701, 702, 705, 710, 720));
}

TEST(Log, ProgressSaysEachSoManyStepsWhereASettingAsks) {
  Listener listener;
  Progress progress(0, 1000, 300);
  for (int step = 1; step <= 1000; ++step) progress.update(step, "loss 2.5");
  EXPECT_THAT(steps_named(listener.heard()), testing::ElementsAre(1, 300, 600, 900, 1000));
}

TEST(Log, AfterTheFirstStepsAPlainLineComesOnceAMinute) {
  EXPECT_FALSE(is_plain_line_due(7, 59));
  EXPECT_TRUE(is_plain_line_due(7, 60));
  EXPECT_TRUE(is_plain_line_due(500, 0.1));
  EXPECT_FALSE(is_plain_line_due(501, 0.1));
}

TEST(Terminal, ABarIsBlocksOrAscii) {
  EXPECT_EQ(bar(0.5, 4, false), "##..");
  EXPECT_EQ(bar(0.5, 4, true), "██░░");
  EXPECT_EQ(bar(2, 3, false), "###");
}

TEST(Terminal, TheFirstVariableThatIsSetSaysTheLocale) {
  setenv("LC_ALL", "", 1);
  setenv("LC_CTYPE", "de_DE.UTF-8", 1);
  setenv("LANG", "C", 1);
  EXPECT_TRUE(is_utf8_locale());
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(is_utf8_locale());
}

TEST(Log, ProgressOnATerminalNamesTheTimeUsedAndTheTimeToCome) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(ours, 0);
  ASSERT_EQ(grantpt(ours), 0);
  ASSERT_EQ(unlockpt(ours), 0);
  std::FILE* terminal = std::fopen(ptsname(ours), "w");
  ASSERT_NE(terminal, nullptr);
  set_log_stream(terminal);
  setenv("LC_ALL", "C", 1);
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
  EXPECT_THAT(heard, testing::ContainsRegex(
                         "step 2/3 [#]+[.]+ . loss 2.4 . [0-9.]+ [mu]?s used . ETA [0-9.]+ [mu]?s"));
  const std::size_t last = heard.rfind("\rstep");
  EXPECT_LE(heard.find_first_of("\r\n", last + 1) - last, 80u) << "a line that wraps stays";
}

}  // namespace
}  // namespace mindpipe
