#pragma once
#include <cstdint>
#include <vector>

#include "program/clock/simulate.h"
#include "trace/replay_times.h"
#include "trace/trace_works.h"

namespace mindpipe {

/// What the computation of a trace is made of: a time G of each piece of work of a stage, times a factor W of
/// the rank that does it, times a factor M of the micro-batch, in each step and replica; the rest is noise.
class WorkModel {
 public:
  /// `paper`: what actions take on paper, by list; needed where a stage has one rank, which has no peers.
  WorkModel(const ReplayGraph& graph, const ReplayTimes& measured, const Durations& paper);

  const TraceWorks& works() const { return works_; }

  /// What an action computed in a step, in nanoseconds, without tensor sums.
  double computed(std::size_t step, int action) const { return computed_[step][action]; }
  /// The median over micro-batches of a work on a rank in a step.
  double middle(std::size_t step, int rank, int work) const;
  double G(int work) const { return of_stage_[work]; }
  double W(int rank, int work) const { return of_rank_[works_.place(rank, work)]; }
  /// 1 for what belongs to no micro-batch.
  double M(std::size_t step, int action) const;
  double mean_M() const { return mean_of_micro_batches_; }

  /// Times G of one micro-batch in a stage for a kind and a chunk, whether it came whole or in pieces, and
  /// the mean of these over stages.
  double stage_time(int work) const { return whole_[work]; }
  double mean_time(int work) const { return mean_whole_[work]; }

  /// Whether ranks are compared with others of their stage, and not with prices on paper.
  bool has_peers() const { return graph_.grid().data * graph_.grid().tensor > 1; }
  bool compares() const { return compares_; }
  const ReplayGraph& graph() const { return graph_; }
  std::size_t steps() const { return computed_.size(); }

 private:
  int micro_batch_place(int action) const;
  void find_middles();
  void compare_ranks();
  void compare_with_paper(const Durations& paper);
  void find_micro_batches();
  void find_wholes();

  const ReplayGraph& graph_;
  TraceWorks works_;
  std::vector<std::vector<double>> computed_, middles_;
  std::vector<double> of_stage_, of_rank_, whole_, mean_whole_;
  std::vector<std::vector<double>> of_micro_batch_;  ///< [step][replica, micro-batch]
  int micro_batches_ = 0;
  double mean_of_micro_batches_ = 1;
  bool compares_ = false;
};

/// What an action computes by a row, without tensor sums.
std::int64_t computed_by(const ReplayRow& row, const ReplayTimes& times, int action);
/// Lets an action compute so many times as long.
void scale_computed(ReplayRow& row, const ReplayTimes& times, int action, double factor);

}  // namespace mindpipe
