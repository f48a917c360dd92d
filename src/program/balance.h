#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/kinds.h"
#include "program/clock/simulate.h"
#include "program/outline.h"

namespace mindpipe {

/// When stages are unequal enough for blocks to move, and whether that is worth it.
struct BalanceRule {
  std::int64_t every = 50;    ///< steps between reports
  int room = 1;               ///< blocks that a boundary moves in a step, at most
  std::int64_t percent = 10;  ///< the slowest stage is so much above the mean ...
  int reports = 2;  ///< ... in so many reports in a row; a stage no further from the middle one is as fast
  std::int64_t gain = 2;         ///< percent of a step that the new cut has to save, by each of these reports
  std::int64_t pays_back = 500;  ///< steps in which it has to save what the moving steps take longer
  std::int64_t lead = 3;         ///< steps from a report to the first moving step
};

/// The moving steps that balance the stages, with what the simulator expects of them.
struct Balancing {
  std::int64_t first_step = 0;         ///< number of the first moving step
  std::vector<std::vector<int>> cuts;  ///< the cut behind each moving step; the last one stays
  std::vector<std::int64_t> slowness;  ///< times of each stage, in thousandths of what is priced, noise apart
  std::int64_t before = 0, after = 0;  ///< nanoseconds of a step with the old cut and with the last one
  std::int64_t moving = 0;             ///< nanoseconds that all moving steps take longer, together
  /// A number for all of it: ranks whose numbers are equal do the same.
  std::uint64_t digest() const;
};

/// The cuts through which `from` becomes `to`, each with boundaries moved by `most` blocks at most, none of
/// them across a whole stage. Boundaries stop before blocks that share a table, which stay where they are.
std::vector<std::vector<int>> cuts_between(const Outline& outline, const std::vector<int>& to, int most);

/// Balances the stages of a training by what they report. All ranks that hear the same whole numbers decide
/// the same: nothing else is asked.
class Balance {
 public:
  /// `outline`: with the cut that the training begins with; `network`: links that plans are made for.
  Balance(Outline outline, Network network, ScheduleKind schedule, const BalanceRule& rule);

  /// Hears how long the compute queue of each stage has worked, in nanoseconds, in the steps up to `step`
  /// since the last report. Gives back what is to be done, if anything is; while blocks move it is deaf.
  std::optional<Balancing> hear(std::int64_t step, std::span<const std::int64_t> worked);
  /// The cut behind all moves that were given back.
  const std::vector<int>& cut() const { return outline_.first_block; }

 private:
  using Report = std::vector<std::int64_t>;  ///< by stage

  std::optional<Balancing> plan(std::int64_t step, const std::vector<Report>& reports) const;
  std::vector<std::int64_t> slowness_by(const Report& report) const;
  Outline slowed(const std::vector<std::int64_t>& slowness) const;
  bool gains(std::int64_t before, std::int64_t after) const;
  Timeline step_with(const Outline& outline) const;

  Outline outline_;
  Network network_;
  ScheduleKind schedule_;
  BalanceRule rule_;
  std::vector<std::int64_t> priced_;  ///< nanoseconds of each stage's compute queue in a step, with the cut
  std::vector<Report> unequal_;       ///< reports in a row
  std::int64_t deaf_until_ = 0;       ///< the last moving step
};

/// "stage 3 takes 2.00 times as long as the mean of all: the cut 8 16 24 becomes 9 18 27 in 3 steps from step
/// 33 on; a step of 21.3 ms should take 12.1 ms"
std::string to_string(const Balancing& balancing);

}  // namespace mindpipe
