#include "core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(listener.heard(), "step 1/1000 | loss 2.5\nstep 1000/1000 | loss 2.5\n");
}

}  // namespace
}  // namespace mindpipe
