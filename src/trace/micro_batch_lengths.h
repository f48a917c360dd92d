#pragma once
#include <map>
#include <tuple>

#include "trace/work_model.h"

namespace mindpipe {

/// How long each micro-batch of a replica is in each step, 1 in the mean of the replica: by what passes take
/// that every micro-batch has alike. A pass that comes once a step, as the pieces of the last backward do,
/// tells nothing, since nobody knows what it would take of another micro-batch.
class MicroBatchLengths {
 public:
  static constexpr int nobody = -1;
  /// `but`: a rank that is not heard, since its own times scatter.
  MicroBatchLengths(const ReplayGraph& graph, const WorkModel& model, int but = nobody);

  /// The length of an action's micro-batch; 1 where nothing is known.
  double of(std::size_t step, int action) const;

 private:
  using Place = std::tuple<std::size_t, int, int>;  ///< step, replica, micro-batch

  Place place(std::size_t step, int action) const;
  /// Whether an action is of work that every micro-batch has on its rank.
  std::vector<char> heard(const WorkModel& model, int but) const;

  const ReplayGraph& graph_;
  std::map<Place, double> lengths_;
};

}  // namespace mindpipe
