#include "core/terminate.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>

#include "core/check.h"
#include "core/clock.h"
#include "core/unfinished_file.h"

namespace mindpipe {
namespace {

/// Runs code that throws as main would run it: nothing catches the exception. gtest would catch what a test's
/// body throws; a noexcept function stops that.
template <class Failure>
void fail_uncaught(Failure failure) noexcept {
  install_terminate_handler();
  failure();
}

TEST(TerminateDeathTest, PrintsTheSentenceAndLeavesWithItsCode) {
  EXPECT_EXIT(
      fail_uncaught([] { fail(Exit::bad_data, "corpus.bin: token {} is outside the vocabulary", 7); }),
      testing::ExitedWithCode(65), "^mindpipe-train: corpus.bin: token 7 is outside the vocabulary\n$");
}

TEST(TerminateDeathTest, ShowsNoRawBytesOfAFileAndNoMoreThanAPageOfThem) {
  EXPECT_EXIT(fail_uncaught([] { fail(Exit::bad_data, "a\x1b[2J\xff\nthe next line: \xc3\xa4"); }),
              testing::ExitedWithCode(65),
              "^mindpipe-train: a\\\\x1b\\[2J\\\\xff\nthe next line: \xc3\xa4\n$");
  static const std::string many(std::size_t{1} << 24, 'a');
  EXPECT_EXIT(fail_uncaught([] { fail(Exit::bad_data, "{}", many); }), testing::ExitedWithCode(65),
              "^mindpipe-train: a{8192}\\.\\.\\.\n$");
}

TEST(TerminateDeathTest, NamesMemoryAndUnknownFailures) {
  EXPECT_EXIT(fail_uncaught([] { throw std::bad_alloc(); }), testing::ExitedWithCode(71), "out of memory");
  EXPECT_EXIT(fail_uncaught([] { throw std::runtime_error("odd"); }), testing::ExitedWithCode(1),
              "internal error: odd");
  EXPECT_EXIT(fail_uncaught([] { throw 3; }), testing::ExitedWithCode(1), "unknown type");
}

TEST(TerminateDeathTest, EndsTheJobThroughTheAbortThatWasSet) {
  EXPECT_EXIT(fail_uncaught([] {
                set_abort([](int code) noexcept { std::_Exit(code + 100); });
                fail(Exit::usage, "no");
              }),
              testing::ExitedWithCode(102), "no");
}

TEST(TerminateDeathTest, HasLastWords) {
  EXPECT_EXIT(fail_uncaught([] {
                set_last_words([](int code, const std::string& sentence) {
                  std::fprintf(stderr, "last words: %d %s", code, sentence.c_str());
                });
                fail(Exit::io_error, "disk full");
              }),
              testing::ExitedWithCode(74), "disk full\nlast words: 74 disk full");
}

TEST(TerminateDeathTest, RemovesUnfinishedFilesBeforeTheLastWords) {
  const UnfinishedFile file(testing::TempDir() + "mindpipe_terminate.partial");
  std::ofstream(file.path()) << "half";
  EXPECT_EXIT(fail_uncaught([] {
                set_last_words([](int, const std::string&) {
                  std::fputs(
                      std::ifstream(testing::TempDir() + "mindpipe_terminate.partial") ? "there" : "gone",
                      stderr);
                });
                fail(Exit::io_error, "disk full");
              }),
              testing::ExitedWithCode(74), "disk full\ngone");
}

TEST(TerminateDeathTest, ARankThatNobodySpeaksForNamesItselfAfterTheLowerOnes) {
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  const std::int64_t start = now_ns();
  EXPECT_EXIT(fail_uncaught([] { fail(Exit::io_error, "disk full"); }), testing::ExitedWithCode(74),
              "^mindpipe-train: rank 3: disk full\n$");
  EXPECT_GT(seconds_since(start), 2.4);
  EXPECT_EXIT(fail_uncaught([] {
                alarm(1);  // by then a lower rank has said it, and the launcher ends this one
                fail(Exit::io_error, "disk full");
              }),
              testing::KilledBySignal(SIGALRM), "^$");
  unsetenv("OMPI_COMM_WORLD_RANK");
}

}  // namespace
}  // namespace mindpipe
