#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mindpipe {

/// The one other thread: ends the job with exit code 81 when this rank's step, or what else goes on, takes
/// too long, because nothing else notices a peer that is stopped but not dead. Of the ranks
/// that give up one speaks, and names the one that does not answer.
class Watchdog {
 public:
  explicit Watchdog(int rank);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Allows `seconds` from now until the next call of this or of disarm(); `phase` is what goes on
  /// ("start", "step 12"), `setting` what sets the limit.
  void arm(double seconds, std::string phase, std::string setting);
  void disarm();
  /// The rank waits, since `since_ns`, for what `text` says ("tensor.sum number 7: nothing from rank 3 yet"),
  /// until the next call of this or of end_wait().
  void begin_wait(std::string text, std::int64_t since_ns);
  void end_wait() { begin_wait("", 0); }
  /// Asks `trouble` about once a second from now on, while the watchdog is armed; what it says ends the job
  /// with exit code 76. An empty function: nobody is asked any more once this call has returned.
  void ask(std::function<std::string()> trouble);
  /// Lets the ranks that give up call the roll in `directory`, which all see, from now on; where[r] says
  /// where rank r is (" on node7"), or nothing. Without this each speaks for itself.
  void call_roll_in(std::string directory, std::vector<std::string> where);
  /// Removes the answers that earlier jobs left there. They do not count in any case; one rank does it for
  /// the people who read them.
  void forget_earlier_rolls() const;

 private:
  void watch();
  [[noreturn]] void report(const std::string& trouble) const;
  [[noreturn]] void bark(double seconds) const;

  const int rank_;
  const std::filesystem::file_time_type start_ = std::filesystem::file_time_type::clock::now();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false, ended_ = false;
  double limit_ = 0;
  std::int64_t begun_ = 0, wait_since_ = 0;
  std::function<std::string()> trouble_;
  std::string phase_, setting_, wait_, directory_;
  std::vector<std::string> where_;
  std::thread thread_;
};

}  // namespace mindpipe
