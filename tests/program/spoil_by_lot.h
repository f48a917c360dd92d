#pragma once
#include <random>

#include "program/checked_lists.h"

namespace mindpipe {

/// A list with one fault, and what it is.
inline std::string spoil_by_lot(Lists& lists, std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const int ranks = static_cast<int>(lists.program.ranks.size());
  lists.rank = below(ranks);
  const int place = below(static_cast<int>(lists.list().size()));
  const std::string text = fmt::format("rank {}, {}: ", lists.rank, line_of(lists.list()[place], place));
  Action& action = lists.list()[place];
  switch (below(11)) {
    case 0:
      lists.leave_out(place);
      return text + "left out";
    case 1: {
      const Action copy = action;
      for (Action& other : lists.list())
        for (int& earlier : other.after) earlier += earlier > place ? 1 : 0;
      lists.list().insert(lists.list().begin() + place, copy);
      return text + "doubled";
    }
    case 2: {
      const int other = below(static_cast<int>(lists.list().size()));
      swap_places(lists.list(), place, other);
      return text + fmt::format("exchanged with {}", other);
    }
    case 3:
      action.peer = below(ranks);
      return text + "another peer";
    case 4:
      action.shard = below(lists.outline.shards);
      return text + "another shard";
    case 5:
      action.micro_batch = below(lists.outline.micro_batches);
      return text + "another micro-batch";
    case 6:
      action.part = below(action.parts);
      return text + "another part";
    case 7:
      if (names_unit(action)) action.unit = below(static_cast<int>(lists.outline.units.size()));
      else action.clears = !action.clears;
      return text + "another unit, or zeroed otherwise";
    case 8: {
      int tapes = 1;
      for (const Action& other : lists.list()) tapes = std::max(tapes, other.tape + 1);
      if (action.tape >= 0) action.tape = below(tapes);
      return text + "another tape";
    }
    case 9:
      // What a subnet reads are the versions of its place in the stream; a step has but one.
      if (lists.of == ListOf::subnets) action.owner.number = below(static_cast<int>(lists.subnets.size()));
      else action.clears = !action.clears;
      return text + "another version, or zeroed otherwise";
    default:
      action.fold = !action.fold;
      return text + "folded otherwise";
  }
}

/// A list with another room, other blocks or another unit in one action, whether it uses that field or not.
inline std::string spoil_field_by_lot(Lists& lists, std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const int blocks = lists.outline.all_blocks();
  const struct {
    const char* name;
    int Action::*field;
    int lowest, count;
  } fields[] = {{"from_buffer", &Action::from_buffer, -1, 6},
                {"to_buffer", &Action::to_buffer, -1, 6},
                {"slab", &Action::slab, -1, 5},
                {"apart", &Action::apart, -1, 5},
                {"waiting", &Action::waiting, -1, 5},
                {"first", &Action::first, 0, blocks + 1},
                {"last", &Action::last, 0, blocks + 1},
                {"unit", &Action::unit, 0, static_cast<int>(lists.outline.units.size())}};
  lists.rank = below(static_cast<int>(lists.program.ranks.size()));
  const int place = below(static_cast<int>(lists.list().size()));
  const std::string text = fmt::format("rank {}, {}: ", lists.rank, line_of(lists.list()[place], place));
  const auto& [name, field, lowest, count] = fields[below(static_cast<int>(std::size(fields)))];
  lists.list()[place].*field = lowest + below(count);
  return text + fmt::format("{} {}", name, lists.list()[place].*field);
}

}  // namespace mindpipe
