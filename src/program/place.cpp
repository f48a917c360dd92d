#include "program/place.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "core/check.h"
#include "program/lists/rings.h"
#include "program/place_gradients.h"

namespace mindpipe {

std::int64_t RankMemory::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

namespace {

/// Names a pair of rings, the sender's and the receiver's.
struct RingPair {
  int from = 0, to = 0;
  bool with_forward = true;
  auto operator<=>(const RingPair&) const = default;
};
RingPair pair_of(const RingKey& key, int rank) {
  return key.outgoing ? RingPair{rank, key.peer, key.with_forward}
                      : RingPair{key.peer, rank, key.with_forward};
}

/// The lowest number that is not in use.
int take_free(std::set<int>& in_use) {
  int number = 0;
  while (in_use.count(number)) ++number;
  in_use.insert(number);
  return number;
}

/// What one micro-batch keeps of a chunk for its backward.
std::int64_t saved_by(const Outline& outline, int chunk) {
  std::int64_t saved = 0;
  for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block)
    saved += outline.cost(block).saved;
  return saved;
}

void place_tapes(std::vector<Action>& list, const Outline& outline, RankMemory& memory) {
  std::map<std::pair<int, int>, int> number_of;
  std::set<int> in_use, seen;
  for (Action& action : list) {
    if (!is_pass(action)) continue;
    const std::pair<int, int> tape{action.chunk, action.micro_batch};
    if (is_forward(action)) number_of[tape] = take_free(in_use);
    MP_CHECK(number_of.count(tape), "{} comes before its forward", to_string(action));
    action.tape = number_of[tape];
    memory.arenas = std::max(memory.arenas, action.tape + 1);
    if (frees_tape(action, outline)) in_use.erase(action.tape);
    if (is_forward(action) && seen.insert(action.chunk).second)
      memory.arena_bytes = std::max(memory.arena_bytes, saved_by(outline, action.chunk));
  }
}

void grow(BoundaryBytes& buffer, const BoundaryBytes& cut, bool with_forward) {
  if (with_forward) {
    buffer.activation = std::max(buffer.activation, cut.activation);
    buffer.encoder_output = std::max(buffer.encoder_output, cut.encoder_output);
  } else {
    buffer.gradient = std::max(buffer.gradient, cut.gradient);
    buffer.encoder_output_gradient = std::max(buffer.encoder_output_gradient, cut.encoder_output_gradient);
  }
}

/// Every piece of a pass names the buffer that it reads; only the last one what the pass writes.
void name_buffers(std::vector<Action>& list, const Crossing& crossing, int number, bool local) {
  if (crossing.writer >= 0) list[crossing.writer].to_buffer = number;
  for (int reader = crossing.reader; reader >= 0 && reader <= crossing.last_reader; ++reader) {
    Action& action = list[reader];
    if (action.queue == Queue::compute && action.kind == list[crossing.reader].kind &&
        action.chunk == list[crossing.reader].chunk &&
        action.micro_batch == list[crossing.reader].micro_batch)
      action.from_buffer = number;
  }
  if (local) return;
  for (int message : crossing.messages)
    (sends(list[message]) ? list[message].from_buffer : list[message].to_buffer) = number;
}

void wait_for(Action& action, int earlier) {
  if (std::find(action.after.begin(), action.after.end(), earlier) == action.after.end())
    action.after.push_back(earlier);
  std::sort(action.after.begin(), action.after.end());
}

/// Hands out buffers between two chunks of one rank by their lifetimes; nothing waits within one queue.
void place_hand_over(std::vector<Action>& list, const std::vector<Crossing>& ring, RankMemory& memory,
                     const Outline& outline, bool with_forward) {
  std::vector<std::tuple<int, bool, const Crossing*>>
      events;  // entry of the list, whether it frees; a pass that does both takes first
  for (const Crossing& crossing : ring) {
    events.push_back({crossing.writer, false, &crossing});
    events.push_back({crossing.last_reader, true, &crossing});
  }
  std::sort(events.begin(), events.end());
  std::set<int> in_use;
  std::map<const Crossing*, int> number_of;
  const int base = static_cast<int>(memory.buffers.size());
  for (const auto& [index, frees, crossing] : events) {
    if (frees) {
      in_use.erase(number_of.at(crossing));
      continue;
    }
    const int number = number_of[crossing] = take_free(in_use);
    memory.buffers.resize(std::max<std::size_t>(memory.buffers.size(), base + number + 1));
    grow(memory.buffers[base + number], outline.cuts[crossing->cut], with_forward);
    name_buffers(list, *crossing, base + number, true);
  }
}

void place_ring(std::vector<Action>& list, const std::vector<Crossing>& ring, int depth, RankMemory& memory,
                const Outline& outline, const RingKey& key) {
  const int base = static_cast<int>(memory.buffers.size());
  depth = std::min<int>(depth, ring.size());
  memory.buffers.resize(base + depth);
  for (int k = 0; k < static_cast<int>(ring.size()); ++k) {
    grow(memory.buffers[base + k % depth], outline.cuts[ring[k].cut], key.with_forward);
    name_buffers(list, ring[k], base + k % depth, false);
    if (k < depth) continue;
    const Crossing& before = ring[k - depth];
    if (key.outgoing)
      for (int send : before.messages) wait_for(list[ring[k].writer], send);
    else
      for (int receive : ring[k].messages) wait_for(list[receive], before.last_reader);
  }
}

void sum_memory(const Outline& outline, int rank, RankMemory& memory) {
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return memory.bytes[static_cast<int>(kind)]; };
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block)
      at(MemoryClass::workspace) = std::max(at(MemoryClass::workspace), outline.cost(block).workspace);
    for (const UnitUse& use : outline.uses_in(outline.first_block[chunk], outline.first_block[chunk + 1])) {
      if (!outline.sharded_gradients) at(MemoryClass::gradients) += outline.accumulator_bytes(use.unit);
      else if (const auto place = memory.gradients.find(use);
               place != memory.gradients.end() && place->second.moves_out)
        at(MemoryClass::gradients) += outline.share_bytes(use.unit);
    }
  }
  for (int unit : outline.units_of_rank(rank)) {
    at(MemoryClass::values) += outline.units[unit].values;
    at(MemoryClass::optimizer) += outline.units[unit].state;
  }
  for (std::int64_t slab : memory.slabs) at(MemoryClass::gradients) += slab;
  at(MemoryClass::activations) = memory.arenas * memory.arena_bytes;
  for (const BoundaryBytes& buffer : memory.buffers)
    at(MemoryClass::boundary) +=
        buffer.activation + buffer.encoder_output + buffer.gradient + buffer.encoder_output_gradient;
}

/// What a placement is made with: depths of rings, and how many sums may be under way beside used slabs.
struct Depths {
  std::map<RingPair, int> rings;
  int sums = 0;
};

Placement place_with(Program& program, const Outline& outline, const Depths& depths) {
  Placement placement;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    auto& list = program.ranks[rank];
    RankMemory& memory = placement.ranks.emplace_back();
    place_tapes(list, outline, memory);
    for (const auto& [key, ring] : crossings_of(list, outline, rank)) {
      if (key.peer == rank) place_hand_over(list, ring, memory, outline, key.with_forward);
      else place_ring(list, ring, depths.rings.at(pair_of(key, rank)), memory, outline, key);
    }
    if (outline.sharded_gradients) place_gradients(list, outline, depths.sums, memory);
    for (const Action& action : list)
      if (!sends(action) && action.payload == Payload::unit_gradient)
        memory.bytes[static_cast<int>(MemoryClass::boundary)] += action.bytes;
    sum_memory(outline, rank, memory);
  }
  return placement;
}

/// The smallest depth with which a ring delays nothing in a timeline that knew no rings.
int depth_needed(const std::vector<Crossing>& ring, const std::vector<Span>& spans, bool outgoing) {
  int depth = 1;
  const auto taken = [&](const Crossing& crossing) {
    std::int64_t start = spans[outgoing ? crossing.writer : crossing.messages.front()].start;
    if (!outgoing)
      for (int receive : crossing.messages) start = std::min(start, spans[receive].start);
    return start;
  };
  const auto freed = [&](const Crossing& crossing) {
    std::int64_t end = outgoing ? 0 : spans[crossing.last_reader].end;
    if (outgoing)
      for (int send : crossing.messages) end = std::max(end, spans[send].end);
    return end;
  };
  for (int k = 0; k < static_cast<int>(ring.size()); ++k)
    while (k >= depth && freed(ring[k - depth]) > taken(ring[k])) ++depth;
  return depth;
}

}  // namespace

Placement place(Program& program, const Outline& outline, const Network& network, int ring_depth) {
  MP_CHECK(ring_depth >= 1, "boundary rings of {} buffers", ring_depth);
  const Durations durations = durations_of(program, outline, network);
  const Timeline unbounded = simulate(program, durations, network);
  MP_CHECK(unbounded.finished, "a program stands still even with unbounded buffers");
  Depths depths;
  depths.sums = static_cast<int>(outline.uses_in(0, outline.all_blocks()).size());
  std::map<RingPair, int> needed;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    for (const auto& [key, ring] : crossings_of(program.ranks[rank], outline, rank)) {
      if (key.peer == rank) continue;
      int& most = needed[pair_of(key, rank)];
      most = std::max({most, ring_depth, depth_needed(ring, unbounded.spans[rank], key.outgoing)});
      depths.rings[pair_of(key, rank)] = ring_depth;
    }
  const auto try_it = [&](Program& placed, Placement& placement) {
    placed = program;
    placement = place_with(placed, outline, depths);
    return simulate(placed, durations, network);
  };
  const auto is_good = [&](const Timeline& line, const Timeline& wanted) {
    return line.finished && line.step <= wanted.step + wanted.step / 200;
  };
  Program placed;
  Placement placement;
  Timeline bounded = try_it(placed, placement);
  while (!is_good(bounded, unbounded) && depths.rings != needed) {
    for (auto& [pair, depth] : depths.rings) depth = std::min(2 * depth, needed[pair]);
    bounded = try_it(placed, placement);
  }
  MP_CHECK(bounded.finished, "a program stands still with the buffers that it needs");
  if (outline.sharded_gradients) {
    const int all = depths.sums;
    depths.sums = 1;
    while (depths.sums < all && !is_good(try_it(placed, placement), bounded)) depths.sums *= 2;
    if (depths.sums >= all) try_it(placed, placement);
  }
  program = std::move(placed);
  return placement;
}

}  // namespace mindpipe
