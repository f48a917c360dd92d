#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "program/sample_space.h"

// The lists of a supernet as the simulator runs them, entry by entry beside what the planner saw.
namespace mindpipe {
namespace {

/// What one start is in the lists: of which kind, where, for whom.
using Name = std::tuple<What, int, int, std::int64_t, int, int>;

Name name_of(const Task& start) {
  return {what_of(start),
          start.rank,
          start.peer,
          start.owner.number,
          start.micro_batch,
          start.kind == TaskKind::move ? start.units.front()
          : is_pass(start.kind)        ? start.first
                                       : start.unit};
}

What what_of(const Action& action, const Outline& outline) {
  const bool of_window = names_unit(action) && outline.units[action.unit].shared;
  if (action.kind == ActionKind::forward) return What{TaskKind::forward};
  if (action.kind == ActionKind::backward) return What{TaskKind::backward};
  if (action.kind == ActionKind::update)
    return of_window ? What{TaskKind::update, Owner::window} : What{TaskKind::update};
  if (action.kind == ActionKind::reduce)
    return of_window ? What{TaskKind::sum, Owner::window} : What{TaskKind::sum};
  if (is_move(action)) return What{TaskKind::move};
  return crosses_cut(action) ? What{TaskKind::message} : What{TaskKind::exchange, Owner::window};
}

Name name_of(const Action& action, int rank, const Outline& outline) {
  const What what = what_of(action, outline);
  const bool has_unit = is_collective(action) || what == What{TaskKind::exchange, Owner::window};
  return {what,
          rank,
          action.peer,
          action.owner.number,
          std::max(0, action.micro_batch),
          is_move(action)   ? action.units.front()
          : is_pass(action) ? action.first
          : has_unit        ? action.unit
                            : -1};
}

/// Lets units go home in no time: in lists they need not wait until all others have ended, as the planner
/// lets them, and would be in the way at a port.
void go_home_at_once(WholeProgram& whole) {
  for (const Place& place : whole.program.places()) {
    const Action& action = whole.program.at(place);
    if (action.owner.of == Owner::drain) whole.durations[place.rank][place.index] = 0;
  }
}

/// From the first start to the last end of all entries of a name; receives are their sends.
std::map<Name, Span> spans_of(const Program& program, const Timeline& timeline, const Outline& outline) {
  std::map<Name, Span> spans;
  for (const Place& place : program.places()) {
    const Action& action = program.at(place);
    if (is_message(action) && !sends(action)) continue;
    const Span& here = timeline.spans[place.rank][place.index];
    const auto [found, is_new] = spans.try_emplace(name_of(action, place.rank, outline), here);
    found->second.start = std::min(found->second.start, here.start);
    found->second.end = std::max(found->second.end, here.end);
  }
  return spans;
}

/// A grid on which nobody waits for a room: what the planner alone knows of.
struct RoomyGrid {
  Outline outline;
  Network network;
  SubnetRules rules;
  std::vector<Subnet> subnets;

  explicit RoomyGrid(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const int lanes = 1 + below(4), stages = 1 + below(4), micro_batches = 1 + 3 * below(2);
    outline = sample_lanes(lanes, stages, 1 + below(8), micro_batches, 0.1 * below(10));
    outline.own_cuts = below(2) == 0;
    if (below(2) == 0) price_h200(outline);
    outline.data = 1 << below(4);
    outline.tensor = 1 << below(3);
    for (UnitCost& unit : outline.units) {
      unit.gradients = 1 + below(6'000'000);
      unit.moved = 1 + below(12'000'000);
      unit.clear = below(3'000);
      unit.tensors = below(5);
      if (below(2) == 0) unit.move = -1;
    }
    for (int tables = below(3); tables-- > 0;) share_one_more();
    network = sample_network(micro_batches);
    network.message.picoseconds_per_byte = below(20);
    network.data = {below(100'000), 1.0 * below(20)};
    network.tensor = {below(10'000), 1.0 * below(20)};
    for (int pairs = below(6); pairs-- > 0;)
      network.between[{below(outline.ranks()), below(outline.ranks())}] = {below(50'000), 1.0 * below(50)};
    if (seed % 3 == 0) cut_transfers(1 + below(6));
    subnets = sample_subnets(outline, static_cast<Draw>(below(3)), 20 + below(40), seed);
    rules = {.admission = static_cast<int>(subnets.size()), .window = 1 + below(20)};
  }

 private:
  /// Messages and sums take so long that they go to ports in turns.
  void cut_transfers(int of_sum) {
    outline.part_bytes = 1 << 18;
    for (BoundaryBytes& cut : outline.cuts) cut.activation = cut.activation > 0 ? 1 << 20 : 0;
    network.message.picoseconds_per_byte = network.data.picoseconds_per_byte = 1000;
    network.calls.of_sum = of_sum;
  }
  void share_one_more() {
    const int last = outline.all_blocks() - 1, unit = static_cast<int>(outline.units.size());
    outline.units.push_back(
        {.values = 8, .gradients = 5'000'000, .update = 24'000, .blocks = {0, last}, .shared = true});
    for (const int block : {0, last}) {
      outline.blocks[block].resize(1);
      outline.units_used[block].resize(1);
      std::erase_if(outline.units_used[block][0], [&](int used) { return !outline.units[used].shared; });
      outline.units_used[block][0].push_back(unit);
    }
  }
};

TEST(Lists, RunInThePlannersTimeEntryByEntry) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const RoomyGrid grid(seed);
    WholeProgram whole = whole_program(grid.outline, grid.network, grid.rules, grid.subnets, {64});
    go_home_at_once(whole);
    Network network = grid.network;
    set_calls(network.calls, grid.outline);
    const Timeline timeline = simulate(whole.program, whole.durations, network);
    ASSERT_TRUE(timeline.finished) << seed;
    const std::map<Name, Span> spans = spans_of(whole.program, timeline, grid.outline);
    CausalPlanner planner(grid.outline, grid.network, grid.rules);
    std::size_t compared = 0;
    for (const Task& start : planned(planner, grid.subnets)) {
      ++compared;
      if (start.owner.of == Owner::drain)
        continue;  // it need not wait until all others have ended, as the planner lets it
      const auto found = spans.find(name_of(start));
      ASSERT_NE(found, spans.end()) << seed << ", kind " << static_cast<int>(start.kind) << " on rank "
                                    << start.rank;
      ASSERT_TRUE(found->second.start == start.start && found->second.end == start.end)
          << seed << ", kind " << static_cast<int>(start.kind) << " of " << start.owner.number << " on rank "
          << start.rank << " (" << grid.outline.lanes << " lanes of " << grid.outline.stages
          << " stages): " << found->second.start << " to " << found->second.end << ", planned " << start.start
          << " to " << start.end;
    }
    EXPECT_EQ(compared, spans.size()) << seed;
  }
}

}  // namespace
}  // namespace mindpipe
