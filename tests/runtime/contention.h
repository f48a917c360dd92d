#pragma once
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/port_records.h"
#include "config/config.h"
#include "program/clock/transfer.h"
#include "runtime/measured_bubble.h"
#include "runtime/ranks.h"
#include "runtime/worker.h"

// Steps of emulated ranks whose messages and sums meet at ports: forwards of a stage take 20 ms, or half of
// that where twice as much may differ, and parts of sums a tenth of it.
namespace mindpipe {

/// How sums over data share the ports with messages.
enum class Folding : std::uint8_t {
  by_class,  ///< in parts, under passes, behind messages
  behind_all_passes,
  in_one_piece_first_come  ///< a unit's sum whole, behind its chunk's last message, in the order of coming
};

struct Cell {
  std::string schedule;
  int chunks = 1;
  GridConfig grid = {1, 4, 2, 1};
  double sums = 0.2 * 71.9;  ///< forwards of a stage that its sums over data take
  double message = 0.02;     ///< share of a forward that a message takes
  int zero = 0;
  Level between_stages = Level::node;
  Folding folding = Folding::by_class;
  std::string name() const {
    return fmt::format("{} of {} chunks on {} x {} x {}, sums {:.1f} f, messages {:.2f} f{}, zero {}{}",
                       schedule, chunks, grid.pipeline, grid.data, grid.tensor, sums, message,
                       between_stages == Level::net ? " between nodes" : "", zero,
                       folding == Folding::by_class            ? ""
                       : folding == Folding::behind_all_passes ? ", sums behind all passes"
                                                               : ", in one piece, first come");
  }
};

/// What a cell's step takes, and how much of it the stages stand idle.
struct Contended {
  double measured = 0, simulated = 0;  ///< milliseconds
  double idle_off = 0;                 ///< the largest difference of a stage's idle share
};

inline std::int64_t cell_forward() { return whole_matrix() ? 20'000'000 : 10'000'000; }

/// Steps of which the middle one counts.
inline int timed_steps() { return whole_matrix() ? 5 : 3; }

inline Config config_of(const Cell& cell) {
  constexpr int micro_batches = 16;
  const int layers = cell.grid.pipeline * cell.chunks;
  Config c;
  c.run.dir = "unused";
  c.model.gpt.layers = layers;
  c.model.gpt.width = 1536;
  c.model.gpt.heads = 16;
  c.model.gpt.mlp_width = 16 * 1536;  // one unit has nearly all that a chunk sums
  c.model.gpt.context = c.data.sequence = 32;
  c.model.gpt.vocabulary = 128;
  c.model.gpt.tied = false;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid = cell.grid;
  c.schedule.kind = kind_named<ScheduleKind>(cell.schedule).value();
  c.schedule.chunks = cell.chunks;
  for (int layer = 1; layer < layers; ++layer)  // of two blocks; the first chunk has the table too
    c.schedule.cuts.push_back(2 * layer + 1);
  c.train.micro_batch = 1;
  c.train.batch = micro_batches * cell.grid.data;
  c.train.zero = cell.zero;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c.trace.steps = timed_steps();
  return resolve(c);
}

/// Gives each layer its share of the stage's time, and links the times that the cell says.
inline void price(const Cell& cell, Outline& outline, Network& network) {
  const int last = outline.all_blocks() - 1;
  for (int block = 0; block <= last; ++block) {
    BlockCost& cost = outline.blocks[block][0];
    const bool is_of_layer = block > 0 && block < last;
    cost.forward = is_of_layer ? cell_forward() / cell.chunks / 2 : 0;
    cost.backward = 2 * cost.forward;
    cost.backward_input = cost.backward_weight = cost.forward;
  }
  for (UnitCost& unit : outline.units) unit.update = unit.clear = 0;
  const int stage = outline.stages / 2;  // without the table or the head
  std::int64_t gradients = 0, sums = 0;
  Outline whole = outline;
  whole.sharded_optimizer = false;
  for (const int unit : outline.units_of_rank(stage)) {
    gradients += outline.units[unit].gradients;
    sums += sum_over_data(whole, unit).bytes;
  }
  network.message = network.grid = {5'000,
                                    1000 * cell.message * static_cast<double>(cell_forward()) /
                                        static_cast<double>(outline.cuts[3].activation),
                                    cell.between_stages};
  network.between.clear();
  network.data = {5'000, 1000 * cell.sums * static_cast<double>(cell_forward()) / static_cast<double>(sums)};
  outline.part_bytes =
      std::llround(static_cast<double>(gradients) * 0.1 / cell.sums) + outline.data * longest_overhang;
  if (cell.folding == Folding::in_one_piece_first_come) outline.part_bytes = std::int64_t{1} << 40;
}

/// Lets sums stand where the cell's folding says: behind the last pass, or behind their chunk's last message.
inline void put_off_sums(const Cell& cell, std::vector<Action>& list) {
  int last_pass = 0;
  std::map<int, int> last_of_chunk;  // its last message, or its last pass
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    if (is_pass(list[i])) last_pass = last_of_chunk[list[i].chunk] = i;
    if (list[i].kind == ActionKind::send && list[i].payload == Payload::gradient)
      last_of_chunk[list[i].chunk] = i;
  }
  std::map<int, std::vector<int>> put_off;  // behind which action
  std::vector<int> order, place(list.size());
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    const int behind = cell.folding == Folding::behind_all_passes ? last_pass : last_of_chunk[list[i].chunk];
    if (list[i].kind == ActionKind::reduce && behind > i) {
      put_off[behind].push_back(i);
      continue;
    }
    order.push_back(i);
    order.insert(order.end(), put_off[i].begin(), put_off[i].end());
  }
  std::vector<Action> moved;
  std::int64_t newest = 0;
  for (const int i : order) {
    place[i] = static_cast<int>(moved.size());
    Action& action = moved.emplace_back(list[i]);
    for (int& earlier : action.after) earlier = place[earlier];
    for (const auto& [behind, sums] : put_off)
      if (std::find(sums.begin(), sums.end(), i) != sums.end()) action.after.push_back(place[behind]);
    if (!is_communication(action)) continue;
    // There is room for sums between the tickets of all others.
    newest = action.kind == ActionKind::reduce ? newest + 1 : action.ticket * 4096;
    action.ticket = newest;
  }
  list = std::move(moved);
}

inline RunPlan plan_of(const Cell& cell, const Config& c) {
  RunPlan plan = make_run_plan(c, Purpose::training, {}, 1,
                               [&](Outline& outline, Network& network) { price(cell, outline, network); });
  if (cell.folding != Folding::by_class)
    for (auto& list : plan.training.program.ranks) put_off_sums(cell, list);
  plan.training.expected = simulate(
      plan.training.program, durations_of(plan.training.program, plan.outline, plan.network), plan.network);
  return plan;
}

/// The largest share by which this rank's idle time differs from the plan's, the median of the steps held.
inline double idle_off(Worker& worker) {
  double off = std::abs(measured_bubble(worker) -
                        worker.plan().training.expected.bubble(worker.layout().coord.pipeline));
  MPI_Allreduce(MPI_IN_PLACE, &off, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return off;
}

/// The middle of some steps by the clock of the host, the best of some attempts, the first within `near` of
/// the simulated one.
inline Contended measured(Worker& worker, const std::string& name, const World& world, double near,
                          int attempts = 3) {
  worker.waiting().set_crowded(true);
  if (worker.wiring().ports) worker.wiring().ports->keep_record();
  const Config& c = worker.config();
  Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
  Contended found;
  found.simulated = static_cast<double>(worker.plan().training.expected.step) * 1e-6;
  const auto step = [&] {
    MPI_Barrier(world.comm);
    const std::int64_t start = now_ns();
    worker.step(corpus, 0, 0, 1e-3);
    std::int64_t lasted = now_ns() - start;
    MPI_Allreduce(MPI_IN_PLACE, &lasted, 1, MPI_INT64_T, MPI_MAX, world.comm);
    return static_cast<double>(lasted) * 1e-6;
  };
  step();
  double best = 1e9;
  for (int attempt = 0; attempt < attempts && best > near; ++attempt) {
    std::vector<double> steps;
    for (int k = 0; k < timed_steps(); ++k) steps.push_back(step());
    const auto middle = steps.begin() + timed_steps() / 2;
    std::nth_element(steps.begin(), middle, steps.end());
    const double off = std::abs(*middle / found.simulated - 1);
    if (off >= best) continue;
    best = off;
    found.measured = *middle;
    found.idle_off = idle_off(worker);
  }
  if (worker.wiring().ports) {
    expect_leaves_by_rule(worker.wiring().ports->out_record());
    expect_arrives_by_rule(worker.wiring().ports->in_record());
    if (whole_matrix()) expect_mostly_in_time(worker.wiring().ports->out_record());
    EXPECT_FALSE(worker.wiring().ports->out_record().empty());
  }
  if (world.rank == 0) {
    std::printf("%s: %.1f ms, simulated %.1f (%+.1f %%); idle time differs by %.1f points at most\n",
                name.c_str(), found.measured, found.simulated, 100 * (found.measured / found.simulated - 1),
                100 * found.idle_off);
    std::fflush(stdout);
  }
  return found;
}

inline Contended contended(const Cell& cell, const World& world, double near, int attempts = 3) {
  const Config c = config_of(cell);
  Worker worker(c, world, plan_of(cell, c));
  if (worker.wiring().ports && cell.folding == Folding::in_one_piece_first_come)
    worker.wiring().ports->ignore_classes();
  return measured(worker, cell.name(), world, near, attempts);
}

}  // namespace mindpipe
