#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "program/lists/stretches.h"
#include "program/partition.h"
#include "program/starts_check.h"

namespace mindpipe {

/// How subnets are drawn: each block's candidate alone; in groups in which none comes twice; and none again
/// before two thirds of the others.
enum class Draw { uniform, permutation, spaced };

/// A supernet of 48 blocks on equal stages whose forwards take a stage 2.4 ms for all micro-batches,
/// backwards twice that, updates 1 % of a forward.
inline Outline sample_space(int stages, int candidates, int micro_batches) {
  constexpr int blocks = 48;
  Outline outline;
  outline.stages = stages;
  outline.micro_batches = micro_batches;
  outline.rank_of_chunk = looped_chunks(stages, 1);
  for (int stage = 0; stage <= stages; ++stage) outline.first_block.push_back(stage * blocks / stages);
  const std::int64_t forward = 2'400'000 * stages / blocks;
  for (int block = 0; block < blocks; ++block) {
    BlockCost cost;
    cost.forward = forward / micro_batches;
    cost.backward = 2 * cost.forward;
    outline.blocks.emplace_back(candidates, cost);
    auto& used = outline.units_used.emplace_back();
    for (int candidate = 0; candidate < candidates; ++candidate) {
      used.push_back({static_cast<int>(outline.units.size())});
      outline.units.push_back({.values = 4, .gradients = 4, .update = forward / 100, .blocks = {block}});
    }
    outline.cuts.push_back({8, 0, 8, 0});
  }
  return outline;
}

/// Lets the candidates of such a space cost what those of nlp.c3 do on an H200, a subnet-stage 2.4 ms in the
/// mean, and cuts it evenly by their means.
inline void price_h200(Outline& outline) {
  constexpr double prices[] = {1.5,  3.5,  1.75, 1.75, 1.75, 1.75, 1.75, 0.75, 0.75, 0.75, 0.75, 0.75,
                               0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 4.8,  4.8,  4.8,  2.7,  0.05};
  constexpr double mean_of_encoder = 1.8, blocks = 48;
  std::vector<std::int64_t> means;
  for (int block = 0; block < outline.all_blocks(); ++block) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < outline.blocks[block].size(); ++k) {
      const bool decodes = block >= 24, crosses = decodes && (block - 23) % 6 == 0;
      const double price = crosses || (decodes && k % 24 == 23) ? 4.8 : prices[k % 24];
      BlockCost& cost = outline.blocks[block][k];
      cost.forward = static_cast<std::int64_t>(2'400'000 * outline.stages / blocks * price / mean_of_encoder /
                                               outline.micro_batches);
      cost.backward = 2 * cost.forward;
      outline.units[outline.units_used[block][k].front()].update = cost.forward * outline.micro_batches / 100;
      sum += cost.forward + cost.backward;
    }
    means.push_back(sum);
  }
  outline.first_block = even_cuts(means, outline.stages);
}

/// Lets such a space have lanes. Moves of units take `share` of what a subnet's forwards and backwards take
/// where they arrive.
inline void give_lanes(Outline& outline, int lanes, double share) {
  outline.lanes = lanes;
  for (UnitCost& unit : outline.units) {
    const BlockCost& cost = outline.cost(unit.blocks.front());
    unit.moved = 12;
    unit.move = static_cast<std::int64_t>(
        share * static_cast<double>(outline.micro_batches * (cost.forward + cost.backward)));
  }
}

inline Outline sample_lanes(int lanes, int stages, int candidates, int micro_batches, double share) {
  Outline outline = sample_space(stages, candidates, micro_batches);
  give_lanes(outline, lanes, share);
  return outline;
}

/// A network whose messages take 1 % of a micro-batch's forward.
inline Network sample_network(int micro_batches) {
  Network network;
  network.message.latency = 24'000 / micro_batches;
  return network;
}

/// Lets all subnets share the table of the first and the last block.
inline void share_a_table(Outline& outline) {
  const int last = outline.all_blocks() - 1, unit = static_cast<int>(outline.units.size());
  outline.units.push_back(
      {.values = 8, .gradients = 8, .update = 24'000, .blocks = {0, last}, .shared = true});
  for (const int block : {0, last}) {
    outline.blocks[block].resize(1);
    outline.units_used[block] = {{unit}};
  }
}

inline std::vector<Subnet> sample_subnets(const Outline& outline, Draw draw, int count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Subnet> subnets(count);
  for (int id = 0; id < count; ++id) subnets[id] = {id, std::vector<std::uint8_t>(outline.all_blocks())};
  for (int block = 0; block < outline.all_blocks(); ++block) {
    const int candidates = static_cast<int>(outline.blocks[block].size());
    std::vector<int> newest(candidates, -2 * candidates), unused;
    for (int id = 0; id < count; ++id) {
      if (unused.empty())
        for (int k = 0; k < candidates; ++k) unused.push_back(k);
      std::vector<int> possible;
      for (const int k : unused)
        if (draw != Draw::spaced || id - newest[k] >= 2 * candidates / 3) possible.push_back(k);
      const int chosen = possible[random() % possible.size()];
      newest[chosen] = id;
      if (draw != Draw::uniform) std::erase(unused, chosen);
      subnets[id].choice[block] = static_cast<std::uint8_t>(chosen);
    }
  }
  return subnets;
}

/// What a task does, beside whose work it is.
struct What {
  TaskKind kind = TaskKind::forward;
  Owner::Of of = Owner::subnet;
  auto operator<=>(const What&) const = default;
};
inline What what_of(const Task& task) {
  return {task.kind, task.owner.of == Owner::window ? Owner::window : Owner::subnet};
}
/// A pass or an update of a subnet.
inline bool is_work_of_subnet(const Task& task) {
  return task.kind <= TaskKind::update && task.owner.of == Owner::subnet;
}
/// What a planner lets begin until a cut behind these subnets.
inline std::vector<Task> planned(CausalPlanner& planner, std::span<const Subnet> subnets) {
  std::vector<Task> tasks;
  const auto name_of = [](const Task& task) {
    return std::tuple(task.kind, task.rank, task.peer, task.with_forward, task.start, task.owner,
                      task.micro_batch, task.unit, task.first, task.last);
  };
  std::map<decltype(name_of(Task{})), std::int64_t> ends;
  planner.watch_ends([&](const Task& task) { ends[name_of(task)] = task.end; });
  planner.next(subnets, true, [&](const Task& task) { tasks.push_back(task); });
  planner.watch_ends({});
  for (Task& task : tasks) task.end = ends.at(name_of(task));
  return tasks;
}

/// The list of one rank, as it is written behind a drain.
inline ListStretch list_of_starts(const Outline& outline, std::int64_t window, int rank,
                                  std::span<const Task> starts) {
  ListWriter writer(outline, rank, rings_of_subnets(rank), window);
  for (const Task& start : starts) writer.add(start);
  return writer.take();
}

/// What is wrong with the times at which a planner lets things start, planned so many subnets at a time.
inline std::vector<std::string> errors_of_clock(const Outline& outline, const Network& network,
                                                const SubnetRules& rules, std::span<const Subnet> subnets,
                                                std::size_t at_once) {
  CausalPlanner planner(outline, network, rules);
  StartsCheck check(outline);
  std::vector<std::string> errors;
  while (!subnets.empty() && errors.empty()) {
    const std::size_t length = std::min(subnets.size(), at_once);
    const std::int64_t oldest = planner.oldest();
    std::vector<Task> starts;
    planner.next(subnets.first(length), length == subnets.size(),
                 [&](const Task& task) { starts.push_back(task); });
    errors = check.check(starts, oldest, planner.known());
    subnets = subnets.subspan(length);
  }
  return errors;
}

/// The lists of all ranks, stretches of `lengths` subnets one behind the other (the last length again and
/// again), with their times.
struct WholeProgram {
  Program program;
  Durations durations;
  std::int64_t planned = 0;  ///< nanoseconds
};
inline WholeProgram whole_program(const Outline& outline, const Network& network, const SubnetRules& rules,
                                  std::span<const Subnet> subnets, const std::vector<int>& lengths) {
  std::vector<int> ranks;
  for (int rank = 0; rank < outline.ranks(); ++rank) ranks.push_back(rank);
  Stretches stretches(outline, network, rules, ranks);
  WholeProgram whole;
  whole.program.ranks.resize(ranks.size());
  whole.durations.resize(ranks.size());
  for (std::size_t turn = 0; !subnets.empty(); ++turn) {
    const std::size_t length =
        std::min<std::size_t>(subnets.size(), lengths[std::min(turn, lengths.size() - 1)]);
    const auto lists = stretches.next(subnets.first(length), length == subnets.size());
    subnets = subnets.subspan(length);
    for (const int rank : ranks) {
      auto& list = whole.program.ranks[rank];
      const int begin = static_cast<int>(list.size());
      for (Action action : lists[rank].actions()) {
        for (int& earlier : action.after) earlier += begin;
        list.push_back(std::move(action));
      }
      whole.durations[rank].insert(whole.durations[rank].end(), lists[rank].times().begin(),
                                   lists[rank].times().end());
    }
  }
  whole.planned = stretches.planner().time();
  return whole;
}

}  // namespace mindpipe
