#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "plan/cost_model.h"
#include "plan/subnet_rooms.h"
#include "program/choose_rooms.h"
#include "program/lists/forward_stretches.h"
#include "state/scalar_bytes.h"

namespace mindpipe {

/// The sizes of one pipeline rank's arenas, beside those of its units.
struct RankFootprint {
  int slots = 1;                       ///< tapes at a time
  TapeSlab slab;                       ///< all tapes lie there
  std::vector<std::size_t> buffers;    ///< boundary buffers
  PassFootprint passes;                ///< the largest of all its chunks
  std::vector<std::size_t> reduction;  ///< what arrives of one part of a sum over data, on each data rank
  ScalarBytes scalars;
  std::size_t workspace(int data_rank) const;  ///< all working memory but that of the scalars
};

using BytesByClass = std::array<std::int64_t, memory_classes.size()>;

/// What a run does with its model. One that only reads needs no training step, gradients or optimizer.
enum class Purpose : std::uint8_t { training, reading };

/// How a supernet is trained: the rules, what they give on paper, and the rooms of each pipeline rank.
struct SubnetPlan {
  RoomsOnPaper paper;
  std::vector<SubnetRooms> rooms;
};

/// A run's plan, alike on every rank: how the model is cut, what a step and an evaluation do and need.
struct RunPlan {
  // Compiled once, since they are long.
  RunPlan();
  RunPlan(const RunPlan&);
  RunPlan(RunPlan&&) noexcept;
  RunPlan& operator=(const RunPlan&);
  RunPlan& operator=(RunPlan&&) noexcept;
  ~RunPlan();

  Purpose purpose = Purpose::training;
  Outline outline;
  MicroBatchGroups groups;   ///< groups of a schedule that has some
  Network network;           ///< links that plans are made for
  PlannedStep training;      ///< a step; empty where the purpose is reading, or a supernet is trained
  std::int64_t left_at = 0;  ///< nanoseconds that a step lasts at least which was left for being too long
  std::optional<SubnetPlan> subnets;  ///< where a supernet is trained
  PlannedForwards evaluation;         ///< forwards over one batch
  bool trains_steps() const { return purpose == Purpose::training && !subnets; }
  /// How long the run's work, a step or else an evaluation of a batch, should take.
  const Timeline& expected() const { return (trains_steps() ? training : evaluation).expected; }
  std::vector<RankFootprint> footprints;  ///< one for each pipeline rank
  bool blocks_may_move = false;           ///< from stage to stage, while the run trains
  int held_batches = 1;                   ///< batches that stay on a rank's device while others are asked for
  /// Every rank's scratch for tensors that pass in pieces to and from neighbours and files (at most 4 MiB).
  std::size_t passing = 0;
  CostModel::Known known;  ///< what device.profile is worth to this plan
  std::int64_t parameters = 0;
  std::vector<Field> fields;  ///< fields of a sample
  /// What speed is counted in, and the operations of one of them: counted in the model's products, and by the
  /// model's formula.
  Model::Counted counted;
  double operations = 0;
  Model::Formula formula;
  /// All that a rank will allocate, by pipeline and data rank, whose parts of optimizer state differ.
  std::vector<std::vector<BytesByClass>> memory;
  /// Bytes of the host's memory in which a rank keeps masters and moments, and segments of swapped blocks,
  /// alike.
  std::vector<std::vector<std::int64_t>> host_memory;
  /// Whether training goes on while a copy of its state is written. If the copy does not fit into memory:
  /// how many bytes of a rank it would take.
  bool copies_state = false;
  std::int64_t copy_left_out = 0;
  bool copy_in_host = false;  ///< it takes nothing of the device's memory
  /// Plans for saves that training waits for; gives back copy_left_out.
  std::int64_t save_without_copy();
  /// The blocks [first, last) of each chunk of a stage.
  std::vector<std::pair<int, int>> ranges_of(int pipeline_rank) const;
  /// The blocks of each chunk that may run there: more where subnets have cuts of their own.
  std::vector<std::pair<int, int>> reach_of(int pipeline_rank) const;
  const BytesByClass& memory_of(const Coord& rank) const { return memory[rank.pipeline][rank.data]; }
  /// The memory of the data rank that needs the most.
  const BytesByClass& most_memory(int pipeline_rank) const;
  std::int64_t most_on_host(int pipeline_rank) const {
    const std::vector<std::int64_t>& ranks = host_memory[pipeline_rank];
    return *std::max_element(ranks.begin(), ranks.end());
  }
  /// Bytes of the host's memory that segments of swapped blocks take.
  std::int64_t segments_on_host(int pipeline_rank) const {
    return static_cast<std::int64_t>(aligned(footprints[pipeline_rank].slab.host_bytes));
  }
};
std::int64_t total_of(const BytesByClass& bytes);
/// Changes what a plan is made of.
using ChangeOnPaper = std::function<void(Outline& outline, Network& network)>;
/// Whether a step that takes so many nanoseconds at least is of no use.
using IsTooLong = std::function<bool(std::int64_t at_least)>;
/// Plans a run. `config` is resolved and its degrees are known. `subnets`: the first of a supernet's stream,
/// for which its rooms are chosen; none: the first of the configuration's. `batches`: batches used for
/// scoring, kept in memory if they take at most 64 MiB. `change`: makes other prices and links of those that
/// the configuration means. `known`: an order that an earlier start of the run has searched.
/// `is_too_long`: steps to leave, where tapes are chosen to fit; the plan then has RunPlan::left_at alone.
RunPlan make_run_plan(const Config& config, Purpose purpose = Purpose::training,
                      std::span<const Subnet> subnets = {}, std::int64_t batches = 1,
                      const ChangeOnPaper& change = {}, const KnownOrder& known = {},
                      const IsTooLong& is_too_long = {});
/// What a configuration leaves to the planner of subnets.
RoomWishes wishes_of(const Config& config);
/// Fails where make_run_plan would because the degrees do not suit batch, model or schedule; plans nothing.
void require_grid(const Config& config);

/// The bytes of memory that fields of a step's samples take on a rank.
std::int64_t input_bytes(const std::vector<Field>& fields, const Layout& layout);
/// Forwards of a batch's part on which each rank calibrates a network of a supernet with batch norms before
/// it is evaluated: of each batch the parts of all data ranks.
std::int64_t calibrations_of(const Config& config, int data);
/// What the model of a resolved configuration says of itself: the fields of its samples, how it continues
/// texts, how many numbers it learns.
std::vector<Field> fields_of(const Config& config);
std::optional<Model::Continuation> continuation_of(const Config& config);
std::int64_t parameters_of(const Config& config);

}  // namespace mindpipe
