#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "lots.h"
#include "program/causal/own_cuts.h"
#include "program/choice_parts.h"
#include "runtime/late_device.h"
#include "runtime/plain_supernet.h"
#include "runtime/ranks.h"
#include "runtime/subnet_batches.h"
#include "spaces.h"
#include "supernet/sampler.h"

namespace mindpipe {

/// A supernet, where it is trained, and how.
struct SupernetCase {
  int pipeline = 1, data = 1, tensor = 1, micro_batches = 1;
  Precision precision = Precision::f32;
  OptimizerKind optimizer = OptimizerKind::adamw;
  bool pairs = false, tied = true, sequence_parallel = false, recompute = false, pictures = false;
  int subnets = 40;
  bool whole = false;  ///< 12 blocks with 4 candidates each (with own cuts on 8 stages 16), so that 300
                       ///< subnets use a unit 75 times; else 8
  int lanes = 1;
  bool own_cuts = false;
  int data_shards = 2;  ///< logical ones
  bool cells = false;   ///< a space of cells, whose blocks are two branches and what combines them
};

/// Two states cross each cut inside a cell; branches that differ in their input or activation share weights.
inline std::string space_of_cells(const SupernetCase& c) {
  const std::string left =
                        "left: {input: [1, 2], norm: own, layer: [conv-3, attention-4], activation: "
                        "[none, relu]}",
                    right =
                        "right: [identity, {input: 2, norm: [own, none], layer: separable-3}, {norm: own, "
                        "layer: mlp-2, activation: gelu}";
  const std::string encoder = fmt::format(
      "encoder: {{cells: 2, blocks: 2, {}, {}], combine: [add, multiply], "
      "residual: 1}}, ",
      left, right);
  return fmt::format(
      "{{name: cells, {}decoder: {{cells: {}, blocks: {}, {}{}], combine: [add, multiply], "
      "residual: 1}}}}",
      c.pairs ? encoder : "", c.pairs ? 2 : 3, c.pairs ? 2 : 3, left,
      (c.pairs ? ", " + right + ", {norm: own, layer: cross-4}" : ", " + right));
}

inline std::string space_of(const SupernetCase& c) {
  if (c.pictures)
    return "{name: pictures, pictures: {groups: [{blocks: 4, width: 8}, {blocks: 4, width: 16}], candidates: "
           "[conv-3, separable-3, dilated-3, max-3, average-3, identity]}}";
  if (c.cells) return space_of_cells(c);
  if (c.whole) {
    const int blocks = c.own_cuts ? std::max(12, 2 * c.pipeline) : 12;
    return c.pairs ? fmt::format(
                         "{{name: pairs, encoder: {{blocks: {}, candidates: [conv-3, light-3-4, attention-4, "
                         "identity]}}, decoder: {{blocks: {}, candidates: [glu, separable-3, attention-4, "
                         "cross-4]}}}}",
                         blocks / 2, blocks / 2)
                   : fmt::format(
                         "{{name: texts, decoder: {{blocks: {}, candidates: [attention-4, mlp-2, "
                         "separable-3, glu]}}}}",
                         blocks);
  }
  return c.pairs
             ? "{name: pairs, encoder: {blocks: 4, candidates: [conv-3, separable-3, light-3-4, attention-4, "
               "identity]}, decoder: {blocks: 4, candidates: [glu, mlp-2, attention-4, light-3-2, cross-4]}}"
             : "{name: texts, decoder: {blocks: 8, candidates: [attention-4, mlp-2, separable-3, glu]}}";
}

inline Config config_of(const SupernetCase& c) {
  Config config;
  config.model.kind = ModelKind::supernet;
  config.schedule.kind = ScheduleKind::causal;
  supernet::Settings& m = config.model.supernet;
  m.space = space_from(space_of(c));
  if (c.pictures) {
    m.channels = 2;
    m.picture_height = m.picture_width = 8;
    m.classes = 6;
  }
  m.width = 16;
  m.vocabulary = 101;
  m.tied = c.tied;
  m.dropout = 0.1;
  m.context = 8;
  if (c.pictures) config.data.sequence = 0;
  else if (c.pairs) config.data.source_sequence = config.data.target_sequence = 8;
  else config.data.sequence = 8;
  config.data.special = {97, 98, 3, 100};
  config.grid = {c.lanes, c.pipeline, c.data, c.tensor};
  config.supernet.cuts = c.own_cuts ? SubnetCuts::own : SubnetCuts::home;
  config.reproducible.tensor = 2;
  config.reproducible.data = c.data_shards;
  config.train.batch = 2 * c.data_shards * c.micro_batches;
  config.train.micro_batch = 2;
  config.train.steps = c.subnets;
  config.train.precision = c.precision;
  config.train.clip = 0.05;
  config.optimizer.kind = c.optimizer;
  config.optimizer.momentum = 0.9;
  config.optimizer.rate.kind = RateKind::linear;
  config.optimizer.rate.peak = 0.01;
  config.train.sequence_parallel = c.sequence_parallel;
  if (c.recompute) config.train.recompute = WhichBlocks::block;
  config.supernet.window = 8;
  config.device.threads = 1;
  return config;
}

inline std::vector<Subnet> first_of_stream(const Config& config) {
  std::vector<Subnet> subnets;
  const auto sampler = make_sampler(config.model.supernet.space, config.supernet.sampler, {.seed = 3});
  for (int id = 0; id < config.train.steps; ++id) subnets.push_back(sampler->next());
  return subnets;
}

/// A plan of its own (of number 0 that of the configuration): admission, slots, prices, whether forwards are
/// held back, and in every other one what goes first of all that may run.
inline RunPlan drawn_plan(Config config, const std::vector<Subnet>& subnets, int number) {
  if (number == 0) return make_run_plan(config, Purpose::training, subnets);
  Lots lots("plan", number);
  const int micro_batches = make_layout(config, {}).micro_batches(), stages = config.grid.pipeline;
  const bool in_groups = config.schedule.kind == ScheduleKind::bulk;
  const int least = in_groups ? stages : 1, of_slots = in_groups ? 2 * micro_batches : micro_batches;
  if (lots.below(2) > 0) config.supernet.admission = least + lots.below(3 * stages * config.grid.supernet);
  if (lots.below(2) > 0) config.supernet.slots = of_slots + lots.below(2 * micro_batches);
  RunPlan plan = make_run_plan(config, Purpose::training, subnets);
  for (auto& candidates : plan.outline.blocks)
    for (BlockCost& cost : candidates) {
      cost.forward = 1000 + lots.below(20'000);
      cost.backward = 1000 + lots.below(40'000);
    }
  plan.subnets->paper.rules.holds_back = lots.below(2) > 0;
  if (number % 2 == 0) plan.subnets->paper.rules.draws = 1 + static_cast<std::uint64_t>(number);
  return plan;
}

/// What a run does besides, on each rank, and on what it runs.
struct SupernetWatch {
  std::function<void(Worker&)> before = [](Worker&) {}, after = [](Worker&) {};
  std::function<void(const Subnet&, StepInput&)> loaded = [](const Subnet&, StepInput&) {};
  MakeBackend make = make_backend;
  MakeTransports connect = make_transports;
  std::function<RunPlan(const Config&, const std::vector<Subnet>&, int number)> plan = drawn_plan;
};

/// A watch that lets a run be on a late device.
inline SupernetWatch watch_of(LateDevice& late) {
  SupernetWatch watch;
  watch.make = late.make;
  watch.connect = late.connect;
  watch.before = [&late](Worker& worker) { late.go_on_in_waits(worker); };
  return watch;
}

/// Whether all stages that use what all subnets share hold the same bits of it: both versions of the values,
/// masters and moments.
inline bool copies_agree(Worker& worker, const World& world) {
  const auto units = static_cast<int>(worker.stage().model().units().size());
  const int shards = worker.layout().grid.tensor;
  constexpr std::uint64_t none = 0;
  std::vector<std::uint64_t> most(static_cast<std::size_t>(units) * shards, none), least(most.size(), ~none);
  for (const int unit : worker.stage().local_units()) {
    if (!worker.stage().model().is_shared(unit)) continue;
    const UnitValues& values = worker.residency().values();
    std::vector<Tensor> all{values.newest(unit), values.older(unit)};
    for (const auto& [name, slot] : worker.residency().shares().of(unit).states()) all.push_back(slot);
    Sha256 sha;
    for (const Tensor& tensor : all) {
      std::vector<std::byte> bytes(tensor.bytes());
      worker.backend().download(tensor, bytes.data());
      sha.add(bytes.data(), bytes.size());
    }
    const Sha256::Digest digest = sha.end();
    std::memcpy(&most[static_cast<std::size_t>(unit * shards + worker.layout().coord.tensor)], digest.data(),
                sizeof(std::uint64_t));
  }
  for (std::size_t i = 0; i < most.size(); ++i)
    if (most[i] != none) least[i] = most[i];
  const int count = static_cast<int>(most.size());
  MPI_Allreduce(MPI_IN_PLACE, most.data(), count, MPI_UINT64_T, MPI_MAX, world.comm);
  MPI_Allreduce(MPI_IN_PLACE, least.data(), count, MPI_UINT64_T, MPI_MIN, world.comm);
  for (std::size_t i = 0; i < most.size(); ++i)
    if (most[i] != none && most[i] != least[i]) return false;
  return true;
}

/// Whether every lane holds the same state: at a drain all units are at home in all of them.
inline bool same_in_all_lanes(Worker& worker, const Sha256::Digest& digest,
                              const std::vector<CheckpointUnit>& counters) {
  std::vector<std::int64_t> words(digest.begin(), digest.end());
  for (const CheckpointUnit& unit : counters) words.insert(words.end(), {unit.version, unit.applied});
  std::vector<std::int64_t> sums = words;
  worker.group(Axis::supernet).sum_integers(sums, TrafficClass::scalars);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (sums[i] != worker.layout().grid.supernet * words[i]) return false;
  return true;
}

/// Bytes that a rank sends as its units move: for the next user of a unit, where that runs on another rank,
/// and in the end home to all lanes. A state is 16 bytes and, with masters, moments, 4 for each element and
/// slot.
inline std::int64_t moved_by_formula(const Outline& outline, const std::vector<Subnet>& subnets,
                                     const Layout& layout) {
  OwnCuts cuts(outline);
  std::map<int, int> lives;  // of units that were used: on which rank
  std::int64_t bytes = 0;
  const auto moved = [&](int unit) {
    return 16 + outline.units[unit].gradients * (outline.units[unit].moved / outline.units[unit].gradients);
  };
  const auto home = [&](int unit, int lane) {
    return lane * outline.stages + outline.rank_of_block(outline.units[unit].blocks.front());
  };
  for (const Subnet& subnet : subnets) {
    const std::vector<int> first = cuts.of(subnet.choice);
    for (int stage = 0; stage < outline.stages; ++stage)
      for (int block = first[stage]; block < first[stage + 1]; ++block)
        for_candidates(outline, subnet.choice, block, [&](int candidate) {
          for (const int unit : outline.units_used[block][candidate]) {
            if (outline.units[unit].shared) continue;
            const int rank = outline.rank_of_subnet(subnet.id, stage);
            const auto [at, is_first] =
                lives.try_emplace(unit, home(unit, static_cast<int>(subnet.id % outline.lanes)));
            if (at->second != rank && at->second == layout.program_rank()) bytes += moved(unit);
            at->second = rank;
          }
        });
  }
  for (const auto& [unit, rank] : lives)
    for (int lane = 0; lane < outline.lanes; ++lane)
      if (rank == layout.program_rank() && home(unit, lane) != rank) bytes += moved(unit);
  return bytes;
}

/// What the ledger of a run says of that, and its own count.
inline std::int64_t sent_by_moves(Worker& worker) {
  const UnitMoves::Sent& sent = worker.residency().moves().sent();
  const std::int64_t to_lanes = worker.ledger().of(Axis::supernet, TrafficClass::moves).bytes,
                     to_neighbours = worker.ledger().of(Axis::pipeline, TrafficClass::moves).bytes;
  EXPECT_EQ(sent.bytes + sent.home, to_lanes + to_neighbours);
  if (worker.layout().grid.supernet == 1) {
    EXPECT_EQ(to_lanes, 0);
  }
  if (worker.config().supernet.cuts == SubnetCuts::home) {
    EXPECT_EQ(to_neighbours, 0);
  }
  return to_lanes + to_neighbours;
}

/// A rank has taken what was planned for it, to the byte.
inline void expect_planned_memory(Worker& worker) {
  for (const MemoryClass kind : memory_classes)
    EXPECT_EQ(static_cast<std::int64_t>(worker.memory().allocated(kind)),
              worker.plan().memory_of(worker.layout().coord)[static_cast<int>(kind)])
        << name_of(kind) << " of rank " << worker.world().rank;
}

/// Brings samples, late now and then, as a watch sees it, and keeps the losses.
class WatchedSubnets : public SubnetBatches {
 public:
  WatchedSubnets(Worker& worker, const SupernetWatch& watch, std::function<void()> dawdle,
                 std::vector<double>& losses)
      : SubnetBatches(worker), watch_(watch), dawdle_(std::move(dawdle)), losses_(losses) {}
  void load(const Subnet& subnet, StepInput& input) override {
    dawdle_();
    SubnetBatches::load(subnet, input);
    watch_.loaded(subnet, input);
  }
  void hear_part(const SubnetScalars& part) override {
    dawdle_();
    if (part.valid > 0) losses_[part.subnet] = part.loss();
  }

 private:
  const SupernetWatch& watch_;
  std::function<void()> dawdle_;
  std::vector<double>& losses_;
};

/// Trains on the ranks of this run, with a plan, stretches and delays of its own: of actions, and in two of
/// three runs of every message and sum. The losses come to all ranks.
inline SubnetsOutcome trained(const Config& config, const World& world, int number,
                              const SupernetWatch& watch = {}) {
  const std::vector<Subnet> subnets = first_of_stream(config);
  RunPlan plan = watch.plan(config, subnets, number);
  Worker worker(config, world, std::move(plan), watch.make, watch.connect);
  share_processors(worker);
  Lots lengths("lengths", number), delays("delays", 100 * number + world.rank);
  const auto dawdle = [&] {
    if (delays.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(delays.below(400)));
  };
  SubnetsOutcome outcome;
  outcome.losses.resize(subnets.size());
  WatchedSubnets calls(worker, watch, dawdle, outcome.losses);
  if (number % 3 != 0 && worker.backend().host_may_read())
    worker.subnets()->script().pacer = Pacer(
        [&](std::int64_t) { return delays.below(4) == 0 ? std::int64_t{1000} * delays.below(300) : 0; });
  watch.before(worker);
  expect_planned_memory(worker);
  for (std::size_t first = 0; first < subnets.size();) {
    const std::size_t count = std::min<std::size_t>(subnets.size() - first, 1 + lengths.below(20));
    const Memory::Closed closed(worker.memory());
    const auto begin = subnets.begin() + static_cast<std::ptrdiff_t>(first);
    worker.subnets()->train({begin, begin + static_cast<std::ptrdiff_t>(count)},
                            first + count == subnets.size());
    first += count;
  }
  EXPECT_EQ(sent_by_moves(worker), moved_by_formula(worker.plan().outline, subnets, worker.layout()))
      << "on rank " << world.rank;
  watch.after(worker);
  const std::vector<CheckpointUnit> counters = worker.state().unit_counters();
  for (const CheckpointUnit& unit : counters) outcome.counters.push_back(unit.version);
  outcome.copies_agree = copies_agree(worker, world);
  outcome.newest = worker.state().digest();
  outcome.copies_agree = outcome.copies_agree && same_in_all_lanes(worker, outcome.newest, counters);
  outcome.before_newest = worker.state().digest(older_state);
  std::vector<double> sums(outcome.losses);
  MPI_Allreduce(sums.data(), outcome.losses.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_MAX,
                world.comm);
  return outcome;
}

/// What has been trained once is kept: many layouts have the same to compare with.
inline const SubnetsOutcome& one_after_the_other(Config config) {
  static std::map<std::string, SubnetsOutcome> known;
  config.grid = {1, 1, 1, 1};
  config.supernet.cuts = SubnetCuts::home;
  config.train.sequence_parallel = false;
  config.train.recompute = WhichBlocks::none;
  const auto [found, is_new] = known.try_emplace(to_yaml(config));
  if (is_new) found->second = PlainSupernet(config).run(first_of_stream(config));
  return found->second;
}

}  // namespace mindpipe
