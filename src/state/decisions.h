#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "optim/unit_optimizer.h"
#include "state/groups.h"
#include "state/loss_sums.h"

namespace mindpipe {

using Optimizers = std::map<int, std::unique_ptr<UnitOptimizer>>;

/// Units whose gradients are decided together.
struct DecisionScope {
  struct Member {
    UnitOptimizer* optimizer = nullptr;
    std::int64_t first_tensor = 0;  ///< number of its first tensor in the scope; -1: another stage counts it
  };
  std::vector<Member> members;
  std::int64_t tensors = 0;  ///< tensors of all its units, wherever they are
};
/// Scopes by unit. A step has one, of all units.
using DecisionScopes = std::map<int, DecisionScope>;
inline constexpr int all_units = -1;

/// Says which chunk sums are the squares of a unit's tensors, in spans [local shards][`tensors`]: its first
/// chunk and its first tensor have these numbers. What every tensor rank holds alike is counted by the first.
void set_spans(Spans& spans, const UnitOptimizer& unit, int tensor_rank, std::int64_t tensors,
               std::int64_t first_chunk, std::int64_t first_tensor);

/// Chunks of the scope that has the most.
std::int64_t most_chunks(const DecisionScopes& scopes);

/// What is decided from the gradients of a scope: whether they are applied, how far they are scaled down, how
/// often that has been. Squares are added up in one fixed order: chunks of a tensor's shard, the tree over
/// shards, tensors. Everything stays on the device.
class Decisions {
 public:
  /// The scope of a step; the scopes of a supernet, whose subnets update the units that they use and no
  /// others, so that no norm reaches beyond a unit.
  static DecisionScopes of_step(const Stage& stage, const Optimizers& optimizers);
  static DecisionScopes of_each(const Optimizers& optimizers);

  /// `shards`: of this rank's tensor axis; `most_tensors`: of the scopes of one call.
  static std::size_t bytes(const DecisionScopes& scopes, std::int64_t shards, std::int64_t most_tensors);
  /// `most_tensors`: of the scopes of one call. `sharded`: replicas hold parts of the gradients.
  Decisions(Backend& backend, Groups groups, const DecisionScopes& scopes, std::int64_t most_tensors,
            bool sharded);

  /// Decides for units whose gradients are here, summed over data; one exchange for all of them. Collective
  /// over the tensor group.
  void decide(std::span<const UnitUse> uses, const StepRule& rule);
  /// Decides a step, whose loss stands in `loss()`. Collective over all groups.
  void decide_step(const StepRule& rule);
  /// The place of a loss that is summed over data: f64 [1].
  Tensor loss() const { return sums_.range(0, 1); }
  /// Squares of the newest step's gradient, of every tensor in model order: f64 [tensors], on every rank.
  Tensor squares_of_step() const { return sums_.range(1, sums_.count() - 1); }
  /// f64 [Decision::places] of a unit's scope; zeros before the first.
  const Tensor& of(int unit) const { return scope_of(unit).decision; }
  /// What a step's decision and squares go on with where other units are here.
  struct Kept {
    std::vector<double> decision, sums;
  };
  Kept kept() const;
  void go_on_from(const Kept& kept);
  bool is_of_step() const { return scopes_.contains(all_units); }
  /// How often a unit's gradient has been applied, or that of all units. Waits for the device.
  std::int64_t applied(int unit) const;
  void set_applied(int unit, std::int64_t times);

 private:
  struct Scope {
    std::vector<UnitOptimizer*> members = {};
    Tensor spans = {};   ///< [local shards][tensors]: which chunk sums are a tensor's; none of other ranks'
    Tensor totals = {};  ///< the loss of a step, and all tensors: two spans
    Tensor decision = {};
    std::int64_t chunks = 0, tensors = 0;
  };
  const Scope& scope_of(int unit) const { return is_of_step() ? scopes_.begin()->second : scopes_.at(unit); }
  Scope take_scope(const DecisionScope& of, bool with_loss);
  void decide_chosen(const StepRule& rule);

  Backend& backend_;
  Groups groups_;
  bool sharded_;
  Arena arena_;
  std::map<int, Scope> scopes_;
  std::vector<const Scope*> chosen_;  ///< scopes of one call
  Tensor chunks_;     ///< squares of each chunk of one scope; zeros for the parts of other ranks
  Tensor of_shards_;  ///< squares [local shards][tensors of the chosen]
  Tensor sums_;       ///< the loss, then the square of each tensor of the chosen
  Tensor totals_;     ///< the loss and the square
};

}  // namespace mindpipe
