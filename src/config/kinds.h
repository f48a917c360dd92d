#pragma once
#include <string>

#include "core/kinds.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace mindpipe {

struct DeviceRow {
  std::string_view name;
  Memory::Kind memory;        ///< where its tensors lie
  bool computes;              ///< numbers; else operations only take their time, and nothing is worth saving
  bool wants_many_rows;       ///< in a product, to be fast
  std::string_view on_paper;  ///< what plans take it for where device.description is empty
};

struct ScheduleRow {
  std::string_view name;
  bool has_chunks;        ///< runs as many chunks of the model on each stage as are asked for
  bool splits_backward;   ///< into the input's half and a weights' half that may come later
  bool any_placement;     ///< chunks may lie on any stage
  bool of_subnets;        ///< orders the subnets of a supernet, not the micro-batches of a step
  bool has_groups;        ///< orders micro-batches in groups that may be chosen
  bool in_v;              ///< runs two chunks on each stage, which lie down the stages and up again
  int tapes, more_tapes;  ///< what it may keep for weight gradients that are put off: percent of 1f1b's
                          ///< largest tapes, and tapes of a stage beside them

  /// Chunks on each stage where nothing else is said.
  int chunks() const { return in_v ? 2 : 1; }
  /// Whether a stage may have so many.
  bool may_have(int chunks_of_stage) const { return has_chunks || chunks_of_stage == chunks(); }
};

struct SearcherRow {
  std::string_view name;
  bool learns;     ///< from scores: what it proposes depends on them, with a lag
  bool has_front;  ///< weighs all objectives, not the first alone
};

struct PrecisionRow {
  std::string_view name;
  DType dtype;  ///< type of activations and of the weights that compute
};

struct ObjectiveRow {
  std::string_view name;
  std::string_view unit;
};

inline constexpr std::size_t most_moments = 2;
struct OptimizerRow {
  std::string_view name;
  std::array<std::string_view, most_moments> moments;  ///< what it keeps of each element, by name
  int count;                                           ///< number of moments
  bool only_with_momentum;                             ///< keeps nothing when optimizer.momentum is 0
};

// Names are those of a configuration. The functions of schedules and optimizers are declared from the lists
// too (program/schedules/order.h, optim/update_rule.h); kinds of models stand in config/models/table.h.

// clang-format off
#define MINDPIPE_STATE_PLACES(kind) kind(device, "device") kind(host, "host")
#define MINDPIPE_BACKGROUNDS(kind) kind(automatic, "auto") kind(no, "no")
#define MINDPIPE_CHECKPOINT_WRITERS(kind) kind(direct, "direct") kind(mpiio, "mpiio")
#define MINDPIPE_SAVE_FAILURES(kind) kind(stop, "stop") kind(warn, "warn")
#define MINDPIPE_POSITIONS(kind) kind(learned, "learned") kind(rotary, "rotary")
#define MINDPIPE_ROTARY_SCALINGS(kind) kind(none, "none") kind(llama3, "llama3")
#define MINDPIPE_EXPORT_NAMES(kind) kind(transformers, "transformers") kind(mindspore, "mindspore")
#define MINDPIPE_PLACES(kind) /* sinusoids: 10000^(-2i/d); closed: the last one's is 1/10000 exactly */ \
  kind(learned, "learned") \
  kind(sinusoids, "sinusoids") \
  kind(closed_sinusoids, "closed_sinusoids")
#define MINDPIPE_BLOCK_ORDERS(kind) kind(pre_norm, "pre_norm") kind(post_norm, "post_norm")
#define MINDPIPE_TABLES(kind) kind(one, "one") kind(two, "two") kind(three, "three")
#define MINDPIPE_NORMS(kind) kind(layer, "layer") kind(rms, "rms")
#define MINDPIPE_MLPS(kind) /* gelu is the tanh form */ \
  kind(gelu, "gelu") \
  kind(gelu_exact, "gelu_exact") \
  kind(relu, "relu") \
  kind(silu, "silu") \
  kind(swiglu, "swiglu")
#define MINDPIPE_WHICH_BLOCKS(kind) kind(none, "none") kind(block, "block")
#define MINDPIPE_DEVICES(kind) /* memory, computes, wants_many_rows, on_paper */ \
  kind(cpu, "cpu", Memory::Kind::host, true, false, "core") \
  kind(cuda, "cuda", Memory::Kind::device, true, true, "h200") \
  kind(emulated, "emulated", Memory::Kind::counted, false, false, "core")
#define MINDPIPE_TRANSPORTS(kind) kind(automatic, "auto") kind(nccl, "nccl") kind(mpi, "mpi")
#define MINDPIPE_BEYONDS(kind) kind(pieces, "pieces") kind(own, "own")
#define MINDPIPE_PLAN_GOALS(kind) \
  kind(time, "time") \
  kind(energy, "energy") \
  kind(carbon, "carbon") \
  kind(cost, "cost")
#define MINDPIPE_ENERGY_METERS(kind) \
  kind(automatic, "auto") \
  kind(rapl, "rapl") \
  kind(nvml, "nvml") \
  kind(estimate, "estimate") \
  kind(none, "none")
#define MINDPIPE_RATES(kind) \
  kind(constant, "constant") \
  kind(linear, "linear") \
  kind(cosine, "cosine") \
  kind(inverse_sqrt, "inverse_sqrt") \
  kind(wsd, "wsd") \
  kind(steps, "steps")
#define MINDPIPE_PRECISIONS(kind) \
  kind(f32, "f32", DType::f32) \
  kind(bf16, "bf16", DType::bf16)
#define MINDPIPE_STEP_SCHEDULES(kind) /* the properties in their order */ \
  kind(gpipe, "gpipe", false, false, false, false, false, false, 0, 0) \
  kind(one_forward_one_backward, "1f1b", false, false, false, false, false, false, 0, 0) \
  kind(interleaved, "interleaved", true, false, false, false, false, false, 0, 0) \
  kind(breadth_first, "breadth-first", true, false, true, false, false, false, 0, 0) \
  kind(elastic, "elastic", true, false, false, false, true, false, 0, 0) \
  kind(zero_bubble, "zb-h1", false, true, false, false, false, false, 110, 0) \
  kind(zero_bubble_v, "zb-v", false, true, false, false, false, true, 110, 0) \
  kind(half_v, "v-half", false, true, false, false, false, true, 50, 2) \
  kind(dual_pipe_v, "dualpipe-v", false, true, false, false, false, true, 113, 0) \
  kind(searched, "searched", false, true, false, false, false, true, 110, 0)
#define MINDPIPE_SUBNET_SCHEDULES(kind) \
  kind(causal, "causal", false, false, false, true, false, false, 0, 0) \
  kind(bulk, "bulk", false, false, false, true, false, false, 0, 0) \
  kind(free, "free", false, false, false, true, false, false, 0, 0)
#define MINDPIPE_SCHEDULES(kind) MINDPIPE_STEP_SCHEDULES(kind) MINDPIPE_SUBNET_SCHEDULES(kind)
#define MINDPIPE_SAMPLERS(kind) \
  kind(uniform, "uniform") \
  kind(permutation, "permutation") \
  kind(spaced, "spaced")
#define MINDPIPE_SUBNET_CUTS(kind) kind(home, "home") kind(own, "own")
#define MINDPIPE_SEARCHERS(kind) /* learns, has_front */ \
  kind(random, "random", false, false) \
  kind(evolution, "evolution", true, false) \
  kind(pareto, "pareto", true, true)
#define MINDPIPE_OBJECTIVES(kind) /* unit */ \
  kind(loss, "loss", "") \
  kind(parameters, "parameters", "") \
  kind(operations, "operations", "a token") \
  kind(latency, "latency", "s") \
  kind(bytes, "bytes", "")
#define MINDPIPE_OPTIMIZERS(kind) /* moments, how many, only_with_momentum */ \
  kind(adamw, "adamw", {"m", "v"}, 2, false) \
  kind(sgd, "sgd", {"velocity"}, 1, true)
// clang-format on

MINDPIPE_KINDS(StatePlace, NamedRow, MINDPIPE_STATE_PLACES)
MINDPIPE_KINDS(Background, NamedRow, MINDPIPE_BACKGROUNDS)
MINDPIPE_KINDS(CheckpointWriterKind, NamedRow, MINDPIPE_CHECKPOINT_WRITERS)
MINDPIPE_KINDS(SaveFailure, NamedRow, MINDPIPE_SAVE_FAILURES)
MINDPIPE_KINDS(Positions, NamedRow, MINDPIPE_POSITIONS)
MINDPIPE_KINDS(RotaryScaling, NamedRow, MINDPIPE_ROTARY_SCALINGS)
MINDPIPE_KINDS(ExportNames, NamedRow, MINDPIPE_EXPORT_NAMES)
MINDPIPE_KINDS(Places, NamedRow, MINDPIPE_PLACES)
MINDPIPE_KINDS(BlockOrder, NamedRow, MINDPIPE_BLOCK_ORDERS)
MINDPIPE_KINDS(Tables, NamedRow, MINDPIPE_TABLES)
MINDPIPE_KINDS(ModelNorm, NamedRow, MINDPIPE_NORMS)
MINDPIPE_KINDS(MlpKind, NamedRow, MINDPIPE_MLPS)
MINDPIPE_KINDS(ScheduleKind, ScheduleRow, MINDPIPE_SCHEDULES)
MINDPIPE_KINDS(Precision, PrecisionRow, MINDPIPE_PRECISIONS)
MINDPIPE_KINDS(WhichBlocks, NamedRow, MINDPIPE_WHICH_BLOCKS)
/// What a plan is to have least of, for what its step is worth.
MINDPIPE_KINDS(PlanGoalKind, NamedRow, MINDPIPE_PLAN_GOALS)
MINDPIPE_KINDS(EnergyMeter, NamedRow, MINDPIPE_ENERGY_METERS)
MINDPIPE_KINDS(RateKind, NamedRow, MINDPIPE_RATES)
MINDPIPE_KINDS(OptimizerKind, OptimizerRow, MINDPIPE_OPTIMIZERS)
MINDPIPE_KINDS(DeviceKind, DeviceRow, MINDPIPE_DEVICES)
MINDPIPE_KINDS(TransportKind, NamedRow, MINDPIPE_TRANSPORTS)
MINDPIPE_KINDS(SamplerKind, NamedRow, MINDPIPE_SAMPLERS)
MINDPIPE_KINDS(SubnetCuts, NamedRow, MINDPIPE_SUBNET_CUTS)
MINDPIPE_KINDS(SearcherKind, SearcherRow, MINDPIPE_SEARCHERS)
MINDPIPE_KINDS(Objective, ObjectiveRow, MINDPIPE_OBJECTIVES)
MINDPIPE_KINDS(AttentionBeyond, NamedRow, MINDPIPE_BEYONDS)

/// "interleaved, breadth-first or elastic": the names of all kinds that have a property. `between` stands
/// before the last.
template <ListedKind Kind, class Row>
std::string names_with(bool Row::*property, std::string_view between) {
  std::string names;
  std::string_view last;
  for (const Row& row : rows_of(Kind{})) {
    if (!(row.*property)) continue;
    if (!last.empty()) names.append(names.empty() ? "" : ", ").append(last);
    last = row.name;
  }
  return names.append(names.empty() ? "" : between).append(last);
}

}  // namespace mindpipe
