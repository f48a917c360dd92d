#include "program/clock/prices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "program/sample_outline.h"
#include "program/sample_space.h"

// What plans say that everything takes, held against formulas that are written out here.
namespace mindpipe {
namespace {

constexpr std::int64_t forward = 700'000, backward = 1'500'000, clear = 3'100, update = 41'000;
constexpr std::int64_t gradients = 10'000'003, values = 5'000'001, moved = 9'000'001, activation = 70'001;
constexpr std::int64_t forward_bytes = 200'003, backward_bytes = 300'007;
constexpr int tensors = 5;

/// Two stages of two blocks each, all of which cost the same.
Outline outline_of(int tensor, int data, int micro_batches, bool sharded) {
  Outline outline = equal_stages(2, micro_batches, 1, {}, 2);
  for (auto& candidates : outline.blocks) {
    candidates[0].forward = forward;
    candidates[0].backward = backward;
    if (tensor > 1) {
      candidates[0].forward_sums = {2, forward_bytes};
      candidates[0].backward_sums = {3, backward_bytes};
    }
  }
  for (UnitCost& unit : outline.units) {
    unit.values = values;
    unit.gradients = gradients;
    unit.clear = clear;
    unit.update = update;
    unit.moved = moved;
    unit.tensors = tensors;
  }
  for (BoundaryBytes& cut : outline.cuts) cut = {activation, 0, 2 * activation, 0};
  outline.tensor = tensor;
  outline.data = data;
  outline.sharded_optimizer = sharded;
  return outline;
}

/// Links of 0.8, 0.9, 1.1, 1.2 and 1 times a rate in bytes a nanosecond.
Network network_of(double rate) {
  const auto link = [&](std::int64_t latency, double times) { return Link{latency, 1000 / (rate * times)}; };
  Network network;
  network.message = link(2'000, 0.8);
  network.between[{0, 1}] = link(1'500, 0.9);
  network.data = link(7'000, 1.1);
  network.grid = link(9'000, 1.2);
  network.tensor = link(1'000, 1);
  return network;
}

/// How long so many bytes take on a link that is so many times as fast as the rate.
std::int64_t carried(double rate, double times, std::int64_t bytes) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * (1000 / (rate * times)) / 1000));
}

/// Parts of 4 MiB less what the ranks' pieces may be longer, each with its latency.
std::int64_t in_parts(double rate, double times, std::int64_t latency, std::int64_t bytes, int parts) {
  std::int64_t time = 0;
  for (int part = 0; part < parts; ++part)
    time += latency + carried(rate, times, bytes * (part + 1) / parts - bytes * part / parts);
  return time;
}
int parts_over_data(std::int64_t bytes, int data) {
  const std::int64_t most = 4'194'304 - std::min<std::int64_t>(2'097'152, data * 65'536);
  return static_cast<int>((bytes + most - 1) / most);
}
std::int64_t sent(std::int64_t bytes, int ranks) { return (bytes * (ranks - 1) + ranks - 1) / ranks; }

struct PricedGrid {
  int tensor, data;
  double rate;
  std::string name() const { return fmt::format("tensor {}, data {}, {} bytes a ns", tensor, data, rate); }

  std::int64_t pass(std::int64_t block, int sums, std::int64_t bytes, int blocks, bool clears) const {
    const std::int64_t alone = blocks * (block + (clears ? clear : 0));
    return tensor == 1 ? alone : alone + blocks * sums * 1'000 + carried(rate, 1, blocks * bytes);
  }
  std::int64_t sum(bool sharded) const {
    return data == 1 ? 0
                     : in_parts(rate, 1.1, 7'000, (sharded ? 1 : 2) * sent(gradients, data),
                                parts_over_data(gradients, data));
  }
  std::int64_t gather() const {
    return in_parts(rate, 1.1, 7'000, sent(values, data), parts_over_data(values, data));
  }
  std::int64_t numbers(int ranks, double times, std::int64_t latency, std::int64_t count) const {
    return ranks == 1 ? 0 : latency + carried(rate, times, 2 * sent(8 * count, ranks));
  }
};

template <class See>
void for_grids(const See& see) {
  for (const int tensor : {1, 2, 4})
    for (const int data : {1, 2, 4, 8})
      for (const double rate : {350.0, 10.0, 0.001}) see(PricedGrid{tensor, data, rate});
}

/// The time of all actions of a step that are such, which is the same for each, and of several parts
/// together.
std::int64_t time_in_step(const PlannedStep& step, const Outline& outline, int rank,
                          const std::function<bool(const Action&)>& is_such) {
  const Durations durations = durations_of(step.program, outline, step.network);
  std::int64_t found = -1, parts = 0;
  for (std::size_t i = 0; i < step.program.ranks[rank].size(); ++i) {
    const Action& action = step.program.ranks[rank][i];
    if (!is_such(action)) continue;
    parts += durations[rank][i];
    if (action.part + 1 < action.parts) continue;
    EXPECT_TRUE(found < 0 || found == parts) << to_string(action) << ": " << parts << " and " << found;
    found = parts;
    parts = 0;
  }
  return found;
}

TEST(Prices, OfAStepAreTheFormulasToTheNanosecond) {
  for_grids([](const PricedGrid& grid) {
    for (const bool sharded : {false, true}) {
      if (sharded && grid.data == 1) continue;
      const Outline outline = outline_of(grid.tensor, grid.data, 3, sharded);
      const PlannedStep step = make_program(outline, "1f1b", network_of(grid.rate));
      const auto of = [&](ActionKind kind, const std::function<bool(const Action&)>& is_such = {}) {
        return time_in_step(step, outline, 0, [&](const Action& action) {
          return action.kind == kind && (!is_such || is_such(action));
        });
      };
      const std::string name = grid.name() + (sharded ? ", sharded" : "");
      EXPECT_EQ(of(ActionKind::forward), grid.pass(forward, 2, forward_bytes, 2, false)) << name;
      const auto is = [](int micro_batch) {
        return [micro_batch](const Action& a) { return a.micro_batch == micro_batch; };
      };
      EXPECT_EQ(of(ActionKind::backward, is(0)), grid.pass(backward, 3, backward_bytes, 2, true)) << name;
      EXPECT_EQ(of(ActionKind::backward, is(1)), grid.pass(backward, 3, backward_bytes, 2, false)) << name;
      EXPECT_EQ(of(ActionKind::backward, is(2)), grid.pass(backward, 3, backward_bytes, 1, false)) << name;
      EXPECT_EQ(of(ActionKind::reduce), grid.sum(sharded)) << name;
      EXPECT_EQ(of(ActionKind::send), 1'500 + carried(grid.rate, 0.9, activation)) << name;
      EXPECT_EQ(of(ActionKind::receive), 2'000 + carried(grid.rate, 0.8, 2 * activation)) << name;
      const double share = std::ceil(static_cast<double>(gradients) / grid.data) / gradients;
      EXPECT_EQ(of(ActionKind::update), sharded ? std::llround(update * share) : update) << name;
      if (sharded) {
        EXPECT_EQ(of(ActionKind::gather), grid.gather()) << name;
      }
      const std::int64_t chunks = 2 * ((gradients + 65'535) / 65'536);
      EXPECT_EQ(of(ActionKind::sum_scalar), grid.numbers(grid.data, 1.1, 7'000, 1) +
                                                (sharded ? grid.numbers(grid.data, 1.1, 7'000, chunks) : 0) +
                                                grid.numbers(grid.tensor, 1, 1'000, 4 * tensors) +
                                                grid.numbers(2, 1.2, 9'000, 1 + 4 * tensors))
          << name;
    }
  });
}

/// The time of each start that is such, which is the same for all.
std::int64_t time_in_plan(const std::vector<Task>& starts, What what, int rank, int micro_batch = -1) {
  std::int64_t found = -1;
  for (const Task& start : starts) {
    if (what_of(start) != what || start.rank != rank) continue;
    if (micro_batch >= 0 && start.micro_batch != micro_batch) continue;
    EXPECT_TRUE(found < 0 || found == start.lasts) << found;
    found = start.lasts;
  }
  return found;
}

/// Blocks like those of a step, and a table that the first and the last block share.
TEST(Prices, OfASubnetAreThoseOfAStepAndWhatItDecidesForItself) {
  for_grids([](const PricedGrid& grid) {
    Outline outline = outline_of(grid.tensor, grid.data, 3, false);
    const int table = 4;
    outline.units.push_back(outline.units[0]);
    outline.units[table].blocks = {0, 3};
    outline.units[table].shared = true;
    for (const int block : {0, 3}) outline.units_used[block][0].push_back(table);
    const std::vector<Subnet> subnets{{0, {0, 0, 0, 0}}, {1, {0, 0, 0, 0}}};
    CausalPlanner planner(outline, network_of(grid.rate), {.admission = 2, .window = 2});
    const std::vector<Task> starts = planned(planner, subnets);
    const auto of = [&](What what, int rank = 0, int micro_batch = -1) {
      return time_in_plan(starts, what, rank, micro_batch);
    };
    const std::string name = grid.name();
    EXPECT_EQ(of(What{TaskKind::forward}), grid.pass(forward, 2, forward_bytes, 2, false)) << name;
    EXPECT_EQ(of(What{TaskKind::backward}, 0, 1), grid.pass(backward, 3, backward_bytes, 2, false)) << name;
    // What a window adds up is zeroed as it is added.
    EXPECT_EQ(of(What{TaskKind::backward}, 0, 0), grid.pass(backward, 3, backward_bytes, 2, true)) << name;
    const std::int64_t decided = grid.numbers(grid.tensor, 1, 1'000, 2 * tensors),
                       loss = grid.numbers(grid.data, 1.1, 7'000, 1);
    EXPECT_EQ(of(What{TaskKind::update}), 2 * update + decided) << name;
    EXPECT_EQ(of(What{TaskKind::update}, 1), 2 * update + decided + loss) << name;
    EXPECT_EQ(of(What{TaskKind::update, Owner::window}),
              update + grid.numbers(grid.tensor, 1, 1'000, tensors))
        << name;
    const std::int64_t integers = 2 * gradients;
    const int parts = (integers + 4'194'303) / 4'194'304;
    EXPECT_EQ(of(What{TaskKind::exchange, Owner::window}), in_parts(grid.rate, 0.9, 1'500, integers, parts))
        << name;
    EXPECT_EQ(of(What{TaskKind::exchange, Owner::window}, 1),
              in_parts(grid.rate, 0.8, 2'000, integers, parts))
        << name;
    for (const Task& start : starts)
      if (start.kind == TaskKind::message) {
        EXPECT_EQ(start.lasts, start.with_forward ? 1'500 + carried(grid.rate, 0.9, activation)
                                                  : 2'000 + carried(grid.rate, 0.8, 2 * activation))
            << name;
      }
    if (grid.data == 1) return;
    EXPECT_EQ(of(What{TaskKind::sum}), grid.sum(false)) << name;
    EXPECT_EQ(
        of(What{TaskKind::sum, Owner::window}),
        in_parts(grid.rate, 1.1, 7'000, 2 * sent(integers, grid.data), parts_over_data(integers, grid.data)))
        << name;
  });
}

TEST(Prices, OfASumGoByTheRootsOfARank) {
  Outline outline = outline_of(1, 2, 6, false);
  outline.shards = 3;  // two roots on each of two ranks
  const PriceList prices(outline, network_of(10));
  EXPECT_EQ(prices.sum(0).lasts,
            in_parts(10, 1.1, 7'000, 3 * sent(gradients, 2), parts_over_data(2 * gradients, 2)));
}

TEST(Prices, OfAMoveAreATablesOrGoByBytesInParts) {
  Outline outline = outline_of(1, 1, 1, false);
  const PriceList prices(outline, network_of(10));
  const int units[] = {0, 1};
  EXPECT_EQ(prices.move(1, 0, units).lasts, 5 * 2'000 + carried(10, 0.8, 2 * moved));
  outline.units[1].move = 123'456;
  EXPECT_EQ(prices.move(0, 1, units).lasts, 5 * 1'500 + 123'456 + carried(10, 0.9, moved));
  const Load priced = PriceList(outline, network_of(10)).move(0, 1, units).load;
  EXPECT_EQ(prices.move(1, 0, units).load.turns(3'000'000), 1) << "parts go one after the other";
  EXPECT_EQ(priced.turns(600'000), 3);
  EXPECT_EQ(priced.turns(25'000'000), PortRule::most_turns);
}

TEST(Prices, OfASlowStageAreItsPassesAndUpdatesNotItsLinks) {
  Outline outline = outline_of(2, 2, 3, false);
  outline.slower = {1, 1.5};
  const PricedGrid grid{2, 2, 10};
  const PriceList prices(outline, network_of(10));
  const PlannedStep step = make_program(outline, "1f1b", network_of(10));
  const auto of = [&](int rank, ActionKind kind) {
    return time_in_step(step, outline, rank,
                        [&](const Action& a) { return a.kind == kind && a.micro_batch < 1; });
  };
  const std::int64_t sums = grid.pass(backward, 3, backward_bytes, 2, true) - 2 * (backward + clear);
  EXPECT_EQ(of(0, ActionKind::backward), 2 * (backward + clear) + sums);
  EXPECT_EQ(of(1, ActionKind::backward), 3 * (backward + clear) + sums);
  EXPECT_EQ(of(1, ActionKind::update), update * 3 / 2);
  EXPECT_EQ(of(1, ActionKind::reduce), of(0, ActionKind::reduce));
}

TEST(Prices, ThatWereMeasuredAreOfWholePassesAndUpdates) {
  Outline outline = outline_of(4, 2, 1, false);
  outline.prices_are_whole = true;
  const std::vector<Subnet> subnets{{0, {0, 0, 0, 0}}};
  CausalPlanner planner(outline, network_of(0.001), {});
  const std::vector<Task> starts = planned(planner, subnets);
  EXPECT_EQ(time_in_plan(starts, What{TaskKind::forward}, 0), 2 * forward);
  std::int64_t pieces = 0;  // a backward before sums over data comes block by block
  for (const Task& start : starts)
    if (what_of(start) == What{TaskKind::backward} && start.rank == 0) pieces += start.lasts;
  EXPECT_EQ(pieces, 2 * backward);
  EXPECT_EQ(time_in_plan(starts, What{TaskKind::update}, 1), 2 * update);
  EXPECT_EQ(time_in_plan(starts, What{TaskKind::sum}, 0), (PricedGrid{4, 2, 0.001}.sum(false)))
      << "a sum over data is no part of a pass";
}

}  // namespace
}  // namespace mindpipe
