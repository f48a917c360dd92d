#include "program/check/check_slab.h"

#include <map>
#include <utility>

#include "core/check.h"

namespace mindpipe {

std::string fault_of_slab(const std::vector<Action>& list, const TapeSlab& slab) {
  using Whose = std::pair<int, int>;
  std::map<std::pair<std::size_t, Whose>, std::size_t> taken;  // ends of rooms that are in use, by begin
  std::string fault;
  const auto take = [&](const Whose& whose, std::size_t begin, std::size_t end) {
    for (const auto& [other, other_end] : taken)
      if (fault.empty() && begin < other_end && other.first < end)
        fault =
            fmt::format("bytes {} to {} of micro-batch {}, chunk {}, are in use by micro-batch {}, chunk {}",
                        begin, end, whose.second, whose.first, other.second.second, other.second.first);
    if (fault.empty() && end > slab.bytes) fault = fmt::format("byte {} is outside of the slab", end);
    if (begin < end) taken[{begin, whose}] = end;
  };
  std::map<Whose, const Action*> first, first_half, last;
  for (const Action& action : list)
    if (const Whose whose{action.chunk, action.micro_batch}; is_pass(action)) {
      last[whose] = &action;
      first.try_emplace(whose, &action);
      if (is_half(action)) first_half.try_emplace(whose, &action);
    }
  for (const Action& action : list) {
    if (!is_pass(action)) continue;
    const Whose whose{action.chunk, action.micro_batch};
    const TapeRoom& room = slab.rooms.at(whose);
    if (first[whose] == &action) take(whose, room.tape, room.tape_end);
    else if (is_half(action) && first_half[whose] == &action) take(whose, room.waiting, room.waiting_end);
    if (last[whose] != &action) continue;
    taken.erase({room.tape, whose});
    taken.erase({room.waiting, whose});
  }
  return fault;
}

void require_sound_slab(const std::vector<Action>& list, const TapeSlab& slab, int rank) {
  const std::string fault = fault_of_slab(list, slab);
  MP_CHECK(fault.empty(), "rank {}: {}", rank, fault);
}

}  // namespace mindpipe
