#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mindpipe {

struct Config;

/// Ranks of a stage: replicas that share its micro-batches, and ranks that share each product.
struct StageShape {
  int data = 1, tensor = 1;
  int ranks() const { return data * tensor; }
  bool operator==(const StageShape&) const = default;
};

/// What a stage of the pieces [first, last) of a model costs in one of the shapes.
struct StageCost {
  double time = 0;                       ///< one micro-batch, there and back, over the replicas
  std::int64_t held = 0, in_flight = 0;  ///< bytes that stay, and those of each micro-batch under way
};

/// A model in pieces, and ranks to divide among its stages, of which each may have a shape of its own.
struct StagesProblem {
  int pieces = 0, ranks = 0, micro_batches = 1;
  std::int64_t limit = 0;  ///< bytes of a rank; 0: any
  std::vector<StageShape> shapes;
  std::vector<StageCost> costs;  ///< [first][last - 1][shape]
  const StageCost& cost(int first, int last, int shape) const {
    return costs[(static_cast<std::size_t>(first) * pieces + last - 1) * shapes.size() + shape];
  }
};

struct PlacedStage {
  int first = 0, last = 0, shape = 0;
  bool operator==(const PlacedStage&) const = default;
};

/// Stages with the least sum of their times plus (micro-batches - 1) times the longest; `time` is that.
struct StagesPlan {
  double time = 0;
  std::vector<PlacedStage> stages;
};

/// The best division, exactly; none: nothing fits. A stage that has s stages from itself on holds as many
/// micro-batches, or all of them. `equal`: all stages have one shape, and no rank is left over.
std::optional<StagesPlan> best_stages(const StagesProblem& problem, bool equal = false);

/// What a plan says of stages with unequal numbers of ranks, which grids cannot have: how much faster they
/// would be by the measure of best_stages, where that is 3 % or more. Empty: less, or not to be compared.
std::string unequal_text(const Config& config, int ranks);

}  // namespace mindpipe
