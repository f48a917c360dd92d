#pragma once
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "program/make_program.h"
#include "program/sample_space.h"

namespace mindpipe {

/// A number for a set of rows of numbers, whatever their order.
class RowsHash {
 public:
  void add(std::initializer_list<std::int64_t> row, std::span<const int> more = {}) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto mix = [&](std::int64_t number) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    };
    for (const std::int64_t number : row) mix(number);
    for (const int number : more) mix(number);
    sum_ += hash;
  }
  std::string text() const { return fmt::format("{:016x}", sum_); }

 private:
  std::uint64_t sum_ = 0;
};

/// What a plan of subnets is, in words and as a number: of each start its kind, rank, owner, micro-batch,
/// rooms and times, whatever the order in which they were told.
inline std::string summary_of(std::span<const Task> tasks) {
  constexpr const char* names[] = {"forwards",    "backwards", "updates",        "messages", "sums",
                                   "shared sums", "exchanges", "shared updates", "moves"};
  const auto number_of = [](const Task& task) {
    const bool of_window = task.owner.of == Owner::window;
    switch (task.kind) {
      case TaskKind::forward:
        return 0;
      case TaskKind::backward:
        return 1;
      case TaskKind::update:
        return of_window ? 7 : 2;
      case TaskKind::message:
        return 3;
      case TaskKind::sum:
        return of_window ? 5 : 4;
      case TaskKind::exchange:
        return 6;
      case TaskKind::move:
        return 8;
      case TaskKind::backward_input:
      case TaskKind::backward_weight:
      case TaskKind::gather:
      case TaskKind::scalars:
      case TaskKind::fetch:
      case TaskKind::evict:
      case TaskKind::stash:
      case TaskKind::unstash:
        break;
    }
    return -1;
  };
  RowsHash hash;
  std::map<int, int> count;
  std::int64_t end = 0, all = 0;
  for (const Task& task : tasks) {
    const int what = number_of(task);
    ++count[what];
    end = std::max(end, task.end);
    all += task.end - task.start;
    hash.add({what, task.with_forward, task.rank, task.kind == TaskKind::message ? -1 : task.peer,
              task.micro_batch, task.unit, task.block, task.owner.number, task.first, task.last, task.slot,
              task.slab, task.start, task.end, static_cast<std::int64_t>(task.waits),
              task.owner.of == Owner::drain},
             what == 2 || what == 8 ? task.units : std::span<const int>{});
  }
  std::string text;
  for (const auto& [what, number] : count) text += fmt::format("{} {}, ", number, names[what]);
  return text + fmt::format("{} ns together, end at {}: {}", all, end, hash.text());
}

/// What steps are, in words and as a number: the time of each action, whatever the order of entries that
/// start together, and the memory of each rank.
class StepsSummary {
 public:
  void add(const PlannedStep& step) {
    ++steps_;
    time_ += step.expected.step;
    hash_.add({steps_, step.expected.step});
    for (const Place& place : step.program.places()) {
      const Action& action = step.program.at(place);
      const Span& span = step.expected.spans[place.rank][place.index];
      hash_.add({steps_, place.rank, static_cast<int>(action.kind), action.chunk, action.micro_batch,
                 action.first, action.last, action.unit, action.part, span.start, span.end});
    }
    for (int rank = 0; rank < static_cast<int>(step.placement.ranks.size()); ++rank) {
      const RankMemory& memory = step.placement.ranks[rank];
      bytes_ += memory.total();
      hash_.add({steps_, rank, memory.arenas, memory.arena_bytes, static_cast<int>(memory.buffers.size()),
                 static_cast<int>(memory.slabs.size())});
      for (const std::int64_t bytes : memory.bytes) hash_.add({steps_, rank, bytes});
    }
  }
  std::string text() const {
    return fmt::format("{} steps, {} ns and {} bytes together: {}", steps_, time_, bytes_, hash_.text());
  }

 private:
  std::int64_t steps_ = 0, time_ = 0, bytes_ = 0;
  RowsHash hash_;
};

/// The line of tests/golden/plans.txt that begins with a name. MINDPIPE_SAY_PLANS=1 prints what the file
/// should have.
inline std::string golden_plan(const std::string& name, const std::string& got) {
  if (std::getenv("MINDPIPE_SAY_PLANS") != nullptr) std::printf("%s: %s\n", name.c_str(), got.c_str());
  std::ifstream file(MINDPIPE_SOURCE_DIR "/tests/golden/plans.txt");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name + ": ", 0) == 0) return line.substr(name.size() + 2);
  return "no line of tests/golden/plans.txt";
}

}  // namespace mindpipe
