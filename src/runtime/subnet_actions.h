#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "comm/channel.h"
#include "operations/decision.h"
#include "plan/subnet_rooms.h"
#include "program/causal/causal_planner.h"
#include "runtime/late_answers.h"
#include "runtime/step_input.h"
#include "state/shared_windows.h"
#include "state/unit_moves.h"
#include "trace/kept_actions.h"

namespace mindpipe {

/// What a stage knows of a subnet once it has updated it; of a window's last one, a second time, once what
/// all subnets share is updated there.
struct SubnetResult {
  std::int64_t subnet = 0;
  bool has_loss = false;   ///< on the stage with the head
  double loss = 0;         ///< added up over the targets of the whole batch
  std::int64_t valid = 0;  ///< targets of the whole batch that count
  std::int64_t units = 0, clipped = 0, skipped = 0;
};

/// What the actions of a supernet's list do: passes of subnets on their slots, updates of their units and of
/// what all share.
class SubnetActions {
 public:
  /// `answers`: brings numbers that the device has made; `scratch`: of the compute queue.
  SubnetActions(Stage& stage, GradientUpdates& updates, Groups groups, const Config& config,
                const Outline& outline, const SubnetRooms& rooms, LateAnswers& answers, Arena& scratch);
  /// The most numbers that it asks of the device at once.
  static std::int64_t most_numbers(const SubnetRooms& rooms) {
    return Decision::places * std::max<std::int64_t>(1, rooms.most_tensors) + 1;
  }

  void forward(const Action& action, const StepInput& input);
  void backward(const Action& action, const StepInput& input);
  void update(const Action& action, const StepInput& input);
  Reductions::Request reduce(Reductions& over_data, const Action& action, const StepInput& input);
  /// What a message brings, or where it takes it from.
  Tensor message_of(const Action& action);
  /// What left this rank of units.
  const UnitMoves::Sent& moved() const { return moves_.sent(); }
  /// Takes what a message of units' states has brought.
  void arrived(const Action& action);
  /// At a cut: makes sure of the versions of what came home, and waits until everything has been told.
  void finish();
  /// Hears of a subnet before anything of it begins, and of all before it in order: which version it is to
  /// find of each of its units is how many older ones use it.
  void know(const Subnet& subnet);
  /// Begins before subnet `first`, at a cut: units were used as often as their versions at home say.
  /// Collective over the pipeline, where subnets have cuts of their own.
  void begin(std::int64_t first);

  /// Fills the input of a subnet, before its first forward here.
  void on_load(std::function<void(std::int64_t subnet)> load) { load_ = std::move(load); }
  /// Says how many targets of a subnet's batch count, of one that another lane runs.
  void on_count(std::function<std::int64_t(std::int64_t subnet)> count) { count_ = std::move(count); }
  /// Hears of each subnet once its units here are updated, in that order, and of each window. What several
  /// stages share and update alike is counted by the first of them.
  void on_result(std::function<void(const SubnetResult&)> hear) { hear_ = std::move(hear); }
  SharedWindows& windows() { return windows_; }
  UnitDecisions& decisions() { return decisions_; }
  /// Called where messages are moved on while other work goes on.
  void on_progress(std::function<void()> hook) { progress_ = std::move(hook); }
  void progress() {
    if (progress_) progress_();
  }
  /// What is kept for the trace.
  KeptActions& kept() { return kept_; }

 private:
  struct Slot {
    Arena kept, arrived_gradient;
    std::unique_ptr<Tape> tape;
  };
  void prepare(Tape& tape, const Action& action, const StepInput& input);
  /// What arrived in a slot with its forward, or its gradient.
  Boundary arrival(Slot& slot, int cut, bool gradient);
  Boundary ring(int buffer, int cut, bool gradient);
  Boundary take(Arena& arena, int cut, bool gradient) const;
  void leave(const Boundary& from, const Boundary& to);
  Tensor losses_of(std::int64_t subnet) const { return losses_.at(subnet % losses_.shape[0]); }
  void see(const Action& action, const StepInput& input);
  void tell(const Action& action, const std::vector<int>& units, std::int64_t valid);
  void tell_shared(int unit, std::int64_t last);
  void update_shared(const Action& action);
  void count_other_lanes(std::int64_t window);
  void count(std::span<const double> decision, SubnetResult& result) const;
  std::int64_t due_version(std::int64_t subnet, int unit) const;
  void require_arrivals(std::int64_t subnet);
  StepRule rule(std::int64_t valid) const;
  void require_versions(const Action& action, const std::vector<UnitUse>& uses) const;
  void require_version(std::int64_t subnet, int unit, std::int64_t found, std::int64_t due) const;

  Stage& stage_;
  GradientUpdates& updates_;
  Config config_;
  Communicator& pipeline_;
  UnitDecisions decisions_;
  SharedWindows windows_;
  UnitMoves moves_;
  bool is_causal_;
  std::int64_t known_ = 0;           ///< subnets, all ids below
  std::int64_t counted_ = 0;         ///< windows whose subnets of other lanes are counted
  std::vector<std::int64_t> users_;  ///< of each unit, as far as subnets are known
  std::map<std::int64_t, std::map<int, std::int64_t>>
      due_;                                            ///< of each subnet of this lane: its units' versions
  std::map<std::int64_t, std::vector<int>> arrivals_;  ///< units that came for each subnet
  std::map<int, std::pair<int, int>> blocks_of_slab_;  ///< whose gradients are there
  std::vector<Slot> slots_;
  std::vector<Arena> rings_;
  LateAnswers& answers_;
  Arena& scratch_;
  Arena losses_arena_;
  KeptActions kept_;
  Tensor losses_;  ///< [subnets in flight][micro-batches, samples, targets]
  std::function<void(std::int64_t)> load_;
  std::function<std::int64_t(std::int64_t)> count_;
  std::function<void(const SubnetResult&)> hear_;
  std::function<void()> progress_;
  std::vector<int> counted_here_;  ///< units that all share and this stage tells of
  SubnetResult of_window_;         ///< as far as they are updated
  std::size_t updated_of_window_ = 0;
};

}  // namespace mindpipe
