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
/// too long, because nothing else notices a peer that is stopped but not dead. One rank of those that give up
/// is_rank_0, and names the one that does not answer.
class Watchdog {
 public:
  explicit Watchdog(int rank);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on `seconds` may pass until the next call of this or of disarm(); `phase` is what goes on
  /// ("start", "step 12"), `setting` what sets the limit.
  void arm(double seconds, std::string phase, std::string setting);
  void disarm();
  /// What the rank waits for at the moment ("tensor.sum number 7: nothing from rank 3 yet") and since when;
  /// empty: nothing.
  void waits_for(std::string text, std::int64_t since_ns = 0);
  /// From now on `trouble` is asked about once a second while the watchdog is armed; what it says ends the
  /// job with exit code 76. None: nobody is asked any more, from this call's return on.
  void ask(std::function<std::string()> trouble);
  /// From now on the ranks that give up call the roll in `directory`, which all see; where[r] says where rank
  /// r is (" on node7"), or nothing. Before, each is_rank_0 for itself.
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
  std::int64_t begun_ = 0, waits_since_ = 0;
  std::function<std::string()> trouble_;
  std::string phase_, setting_, waits_for_, directory_;
  std::vector<std::string> where_;
  std::thread thread_;
};

}  // namespace mindpipe
