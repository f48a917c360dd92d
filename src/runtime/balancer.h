#pragma once
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/balance.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Lets a training balance its stages: each rank reports how long its stage has worked with the agreement of
/// steps, all ranks decide the same from these whole numbers, and the moves are planned and proved beside the
/// next step.
class Balancer {
 public:
  /// Balances a worker that trains steps, whose configuration has repartition.every.
  explicit Balancer(Worker& worker);

  /// Numbers of an agreement that are the balancer's.
  std::size_t numbers() const { return static_cast<std::size_t>(worker_.plan().outline.stages) + 2; }
  /// Says what this rank has to say as the step behind `done` steps begins: 0 where that is nothing.
  void say(std::int64_t done, std::span<std::uint64_t> mine);
  /// What the log says of a balancing.
  struct News {
    std::string sentence;
    bool is_measured = false;     ///< all blocks have moved, and steps since then were measured
    bool stays = false;           ///< the cut: a rank has no memory for another
    std::int64_t first_step = 0;  ///< first moving step
    std::int64_t last_step = 0;   ///< last moving step
    double planned_before = 0;    ///< seconds of a step on paper, with the old cut
    double planned = 0;           ///< seconds of a step on paper, with the new cut
    double measured_before = 0;   ///< seconds of a step on this rank, with the old cut
    double measured = 0;          ///< seconds of a step on this rank, with the new cut
  };
  /// Hears what all ranks have said, behind that step, which took so long here. Tells what is new.
  std::optional<News> hear(std::span<const std::uint64_t> all, double seconds);
  /// Forgets what was heard, decided and is to move: the run has gone back to a checkpoint.
  void begin_anew();

 private:
  struct Decided {
    Balancing balancing;
    std::future<std::vector<PlannedMove>> moves;  ///< planned beside a step
  };
  std::optional<News> take(Decided decided);
  std::optional<News> decide(std::span<const std::uint64_t> worked);
  bool is_due(std::int64_t done) const { return steps_ > 0 && done % every_ == 0; }

  Worker& worker_;
  std::int64_t every_;
  Balance balance_;
  std::int64_t worked_ = 0;               ///< nanoseconds that this rank had worked at the last report
  std::int64_t steps_ = 0;                ///< steps since the last report
  double seconds_ = 0;                    ///< seconds of these steps
  double mean_seconds_ = 0;               ///< seconds of a step before the last report
  std::optional<std::int64_t> reported_;  ///< steps that are done, where their report is under way
  std::optional<Decided> decided_;        ///< ranks have yet to see that they have decided the same
  std::optional<News> moving_;            ///< what is told once it is measured
  std::vector<int> too_large_;            ///< a cut for which there was no room
};

}  // namespace mindpipe
