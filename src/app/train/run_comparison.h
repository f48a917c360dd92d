#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "app/run/run_history.h"

namespace mindpipe {

/// A training beside an earlier run of the same arithmetic: losses and norms of each step, and the weights at
/// the end, have to be equal bit for bit. Lives on rank 0.
class RunComparison {
 public:
  /// Reads metrics.jsonl of `other`; refuses a run of which a step has arithmetic of another name, and `own`
  /// itself. `history`: of this run.
  RunComparison(const std::string& other, const std::string& own, const RunHistory& history);

  /// A step or subnet is done: ends the job where the other run has other numbers of it, or, if the run may
  /// take the step back, once it stands.
  void see(std::int64_t step, const std::map<std::string, double>& numbers, bool may_go_back);
  /// The run goes back to no step before this one any more: ends the job if one up to it differed.
  void stands(std::int64_t step) const;
  /// The run has gone back: the steps behind this one come again.
  void forget_behind(std::int64_t step);
  /// Compares the weights that both runs have left, if the other one ended after `step`, too; tells of all.
  void end(std::int64_t step) const;

 private:
  /// A text for each step from which on it holds.
  using FromStep = std::map<std::int64_t, std::string>;

  void read();
  void require_same_names() const;
  std::string other_course_through(std::int64_t step) const;
  std::string meaning(std::int64_t step) const;
  [[noreturn]] void differ(std::int64_t step, const std::string& what) const;

  std::string other_, own_;
  RunHistory history_;
  std::map<std::int64_t, std::map<std::string, double>> steps_;
  FromStep names_, courses_;                      ///< arithmetic and course, as the other's lines say
  std::optional<RunHistory> theirs_;              ///< none: no checkpoint of it is left
  std::optional<WrittenSettings> last_settings_;  ///< settings in its config.yaml
  std::int64_t compared_ = 0;
  std::map<std::int64_t, std::string> found_;  ///< what differs, of steps that may be taken back
};

}  // namespace mindpipe
