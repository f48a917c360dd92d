#include "app/stop_request.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace mindpipe {
namespace {

TEST(StopRequestDeathTest, TheThirdSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        install_stop_signals();
        for (int i = 0; i < 3; ++i) std::raise(SIGUSR1);
      },
      testing::ExitedWithCode(75), "");
}

TEST(StopRequest, CountsSignals) {
  install_stop_signals();
  EXPECT_EQ(stop_requests(), 0);
  std::raise(SIGUSR1);
  EXPECT_EQ(stop_requests(), 1);
  EXPECT_EQ(stop_signal(), std::string("SIGUSR1"));
  std::raise(SIGTERM);
  EXPECT_EQ(stop_requests(), 2);
  EXPECT_EQ(stop_signal(), std::string("SIGTERM"));
}

}  // namespace
}  // namespace mindpipe
