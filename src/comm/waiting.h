#pragma once
#include <algorithm>
#include <functional>
#include <string>

#include "comm/gate.h"
#include "core/clock.h"

namespace mindpipe {

class Staging;
class Watchdog;

/// Lets a rank that computes look after its messages not too often: asking MPI takes a microsecond or two,
/// and kernels may be as short.
class Pace {
 public:
  /// Calls `look` unless the last look has only just ended. Looks take a sixty-fourth of the time, except
  /// long ones: those have moved something, or MPI has yielded the processor to another process, and the next
  /// is due soon.
  template <class Look>
  void look(Look&& look) {
    const std::int64_t start = now_ns();
    if (start < next_) return;
    look();
    const std::int64_t end = now_ns();
    next_ = end + std::clamp(64 * (end - start), shortest_ns, longest_ns);
  }

 private:
  static constexpr std::int64_t shortest_ns = 50'000, longest_ns = 128'000;
  std::int64_t next_ = 0;
};

/// Waits for other ranks: lets this rank's other queues move, spins at first, then sleeps 50 to 200 us at a
/// time when ranks outnumber processors. A wait that gets long is described to the watchdog. There is one
/// object for each rank.
class Waiting {
 public:
  using Describe = std::function<std::string()>;

  /// Sets what is called in every turn of a wait, to move whatever else is under way. It must not wait
  /// itself.
  void on_progress(std::function<void()> hook) { hook_ = std::move(hook); }
  /// Says whether ranks outnumber processors here, so that a rank that spins takes time from the one it waits
  /// for.
  void set_crowded(bool crowded) { crowded_ = crowded; }
  /// Sets how many turns a crowded rank spins before it sleeps, and how long it sleeps at most. Ranks that
  /// only imitate computing, many to a processor, spin little.
  void set_patience(int spins, int longest_sleep_us) {
    spins_ = spins;
    longest_sleep_us_ = longest_sleep_us;
  }
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }

  /// Returns once `done()` holds. `describe` says what is waited for; it is asked for only when the wait gets
  /// long.
  template <class Done>
  void until(Done&& done, const Describe& describe) {
    if (done()) return;
    Turn turn{now_ns()};
    while (!done()) pause(turn, describe);
    ended(turn);
  }
  /// Lets this rank's other queues move until a time of now_ns has come: sleeps towards it, and meets it
  /// awake, since a sleeper may be awoken 60 us late. Nobody is waited for, so that it does not count.
  void until_time(std::int64_t end_ns);
  /// Makes a call that waits for others by itself, and tells the watchdog.
  void blocked(const Describe& describe, const std::function<void()>& call);
  /// The gate where this rank's traffic of all groups and channels meets.
  TrafficGate& gate() { return gate_; }
  /// Sets what messages pass through where MPI cannot read the tensors' memory; null where it can.
  void set_staging(Staging* staging) { staging_ = staging; }
  Staging* staging() const { return staging_; }
  /// Seconds that this rank has waited so far.
  double seconds() const { return seconds_; }

 private:
  struct Turn {
    std::int64_t start;
    int count = 0;
    std::int64_t described = 0;  ///< when the watchdog was told last; 0: not yet
  };
  void look();
  void pause(Turn& turn, const Describe& describe);
  void ended(const Turn& turn);

  std::function<void()> hook_;
  Watchdog* watchdog_ = nullptr;
  Staging* staging_ = nullptr;
  TrafficGate gate_;
  bool crowded_ = false, in_hook_ = false;
  int spins_ = 2000, longest_sleep_us_ = 200;
  double seconds_ = 0;
};

}  // namespace mindpipe
