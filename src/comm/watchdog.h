#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace mindpipe {

/// The one other thread: ends the job with exit code 81 when this rank has made no step forward for too long, because
/// nothing else notices a peer that is stopped but not dead. It says what the rank was doing and waiting for.
class Watchdog {
 public:
  /// `log_file` may be empty: then the sentence goes to stderr alone.
  explicit Watchdog(int rank, std::string log_file = "");
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on `seconds` may pass between two calls of feed(); `description` is the phase ("start", "step 12").
  void arm(double seconds, std::string description);
  void feed();
  void disarm();
  /// What the rank waits for at the moment ("receive of activation 7 from rank 3"); empty: nothing.
  void waits_for(std::string text);

 private:
  void watch();
  [[noreturn]] void bark(double seconds) const;

  const int rank_;
  const std::string log_file_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false, ended_ = false;
  double limit_ = 0;
  std::int64_t fed_ = 0, waits_since_ = 0;
  std::string description_, waits_for_;
  std::thread thread_;
};

}  // namespace mindpipe
