#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "program/check/checked_stretch.h"
#include "supernet/sampler.h"

namespace mindpipe {

class Stretches;

/// A stretch of a supernet's program as one rank has planned it.
struct PlannedStretch {
  std::vector<Subnet> subnets = {};  ///< subnets that the planner heard of with it
  CheckedStretch list = {};
  std::int64_t end = 0;    ///< subnets that the planner knows, all ids below
  std::int64_t ended = 0;  ///< subnets below have ended once it has run
  bool last = false;       ///< it ends with a drain
  std::uint64_t hash = 0;  ///< hash of everything planned so far, on all ranks
};

/// Plans, writes and checks stretches beside what runs, one at a time, on a thread of its own that sleeps
/// while nothing is asked of it, and gives way to others. It makes no call of MPI's and shares
/// nothing that changes with its owner.
class PlanningThread {
 public:
  /// `stream`: of the subnets that are drawn here; may be none.
  PlanningThread(std::unique_ptr<Stretches> stretches, std::unique_ptr<Sampler> stream);
  ~PlanningThread();
  PlanningThread(const PlanningThread&) = delete;
  PlanningThread& operator=(const PlanningThread&) = delete;

  /// Asks for a stretch of the next `count` subnets of the stream, or of these. The one before was taken.
  void ask(std::int64_t count, bool last) { ask({{}, count, last}); }
  void ask(std::vector<Subnet> subnets, bool last) { ask({std::move(subnets), 0, last}); }
  /// Whether what was asked for can be taken without waiting.
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }
  /// What was asked for and is ready. Throws what the planner, or a check of what it planned, has thrown.
  PlannedStretch take();

 private:
  struct Question {
    std::vector<Subnet> subnets;
    std::int64_t draws = 0;
    bool last = false;
  };
  void ask(Question question);
  void run();
  PlannedStretch plan(Question question);

  std::unique_ptr<Stretches> stretches_;  ///< the thread's, as is the stream
  std::unique_ptr<Sampler> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Question> question_;
  bool stops_ = false;
  bool is_open_ = false;  ///< the owner's: asked and not taken
  std::atomic<bool> is_ready_ = false;
  std::optional<PlannedStretch> planned_;  ///< with what went wrong the owner's while it is ready
  std::exception_ptr trouble_;
  std::thread thread_;
};

}  // namespace mindpipe
