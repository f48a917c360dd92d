#pragma once
#include <vector>

#include "trace/work_model.h"

namespace mindpipe {

/// A rank that computes 8 % more than its peers is found, one that computes 5 % more in most steps accused;
/// scatter counts as noise where it is twice that of others.
inline constexpr double slower = 1.05, in_most_steps = 0.75, more_spread = 2;

/// How fast ranks are beside their peers, and how much their passes scatter.
class RankSpeeds {
 public:
  explicit RankSpeeds(const WorkModel& model);

  /// How many times as long as its peers a rank computes in each step.
  const std::vector<double>& of_steps(int rank) const { return of_step_[rank]; }
  /// The median of these.
  double usual(int rank) const { return usual_[rank]; }
  /// Whether it is slower than its peers in most steps, beyond what its own noise makes of that.
  bool is_slow(int rank) const;
  /// How many times as long as its peers a rank may compute by such noise alone, over some steps.
  double beyond_noise(double noise, int rank, std::size_t over) const;
  /// How much the passes of a rank scatter within its steps, as a share of their time.
  double noise(int rank) const { return noise_[rank]; }
  /// How much they scatter over all steps, unequal micro-batches included.
  double scatter(int rank) const { return scatter_[rank]; }
  const std::vector<double>& noises() const { return noise_; }
  /// Passes of a rank in a step.
  int passes(int rank) const { return passes_[rank]; }
  /// How often a rank does a work in a step.
  int count(int rank, int work) const { return counts_[rank][work]; }

 private:
  int stage_of(int rank) const { return coord_at(model_.graph().grid(), rank).pipeline; }
  void count_works();
  void compare_ranks();
  void find_noise();

  const WorkModel& model_;
  std::vector<std::vector<int>> counts_;
  std::vector<std::vector<double>> of_step_;
  std::vector<double> usual_, noise_, scatter_;
  std::vector<int> passes_;
};

/// The standard deviation.
double spread_of(const std::vector<double>& values);
/// The share by which the median of so many values may be off that scatter so much, by chance alone.
double beyond_scatter(double spread, double count);

}  // namespace mindpipe
