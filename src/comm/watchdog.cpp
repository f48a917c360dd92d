#include "comm/watchdog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

#include "comm/mpi.h"
#include "core/clock.h"

namespace mindpipe {

Watchdog::Watchdog(int rank, std::string log_file) : rank_(rank), log_file_(std::move(log_file)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::arm(double seconds, std::string description) {
  {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    limit_ = seconds;
    fed_ = now_ns();
    description_ = std::move(description);
  }
  changed_.notify_one();
}

void Watchdog::feed() {
  const std::lock_guard lock(mutex_);
  fed_ = now_ns();
}

void Watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
}

void Watchdog::waits_for(std::string text) {
  const std::lock_guard lock(mutex_);
  waits_for_ = std::move(text);
  waits_since_ = now_ns();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!armed_) {
      changed_.wait(lock);
      continue;
    }
    const double left = limit_ - seconds_since(fed_);
    if (left <= 0) bark(seconds_since(fed_));
    changed_.wait_for(lock, std::chrono::duration<double>(left));
  }
}

void Watchdog::bark(double seconds) const {
  const std::string waits = waits_for_.empty() ? "is in no wait of its own" : fmt::format("has waited {:.1f} s for {}", seconds_since(waits_since_), waits_for_);
  const std::string sentence = fmt::format("mindpipe: watchdog: rank {} on {} made no progress for {:.1f} s (limit {:.1f} s) in {}; it {}; ending the job with exit code {}\n",
                                           rank_, host_name(), seconds, limit_, description_, waits, static_cast<int>(Exit::watchdog));
  // Straight to the descriptors: another thread may hold the locks of the streams.
  [[maybe_unused]] auto written = write(STDERR_FILENO, sentence.data(), sentence.size());
  if (!log_file_.empty()) {
    const int file = open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) written = write(file, sentence.data(), sentence.size()), close(file);
  }
  abort_job(static_cast<int>(Exit::watchdog));
}

}  // namespace mindpipe
