#include "program/tape_slab.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace mindpipe {
namespace {

/// What lies in a slab from one action of a list to another.
struct Lying {
  std::pair<int, int> whose;  ///< chunk and micro-batch
  int begin = 0, end = 0;     ///< the first and the last action with it
  std::size_t bytes = 0, at = 0;
  int arena = 0;  ///< a tape's
};

/// What lies in a slab, in the order in which it comes there.
class Shelf {
 public:
  void put(const Lying& one) {
    lying_.push_back(one);
    latest_.push_back(std::max(latest_.empty() ? 0 : latest_.back(), one.end));
  }
  /// The bytes that are taken at some time while `one` lies there.
  void add_taken(const Lying& one, std::vector<std::pair<std::size_t, std::size_t>>& taken) const {
    const auto later = std::partition_point(lying_.begin(), lying_.end(),
                                            [&](const Lying& other) { return other.begin <= one.end; });
    for (auto k = static_cast<std::size_t>(later - lying_.begin()); k-- > 0 && latest_[k] >= one.begin;)
      if (lying_[k].end >= one.begin) taken.emplace_back(lying_[k].at, lying_[k].at + lying_[k].bytes);
  }
  const std::vector<Lying>& lying() const { return lying_; }

 private:
  std::vector<Lying> lying_;
  std::vector<int> latest_;  ///< ends of all up to there
};

/// `taken`: room to work in.
std::size_t lowest_free(const Lying& one, const Shelf& shelf, const Shelf& beside,
                        std::vector<std::pair<std::size_t, std::size_t>>& taken) {
  taken.clear();
  for (const Shelf* each : {&shelf, &beside}) each->add_taken(one, taken);
  std::sort(taken.begin(), taken.end());
  std::size_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin >= at + one.bytes) break;
    at = std::max(at, end);
  }
  return at;
}

/// Numbers rooms by chunk and micro-batch, each where it is first asked for.
class RoomNumbers {
 public:
  RoomNumbers(int chunks, int micro_batches)
      : micro_batches_(micro_batches), numbers_(static_cast<std::size_t>(chunks) * micro_batches, -1) {}
  int& of(const TapePass& pass) { return numbers_[pass.chunk * micro_batches_ + pass.micro_batch]; }

 private:
  std::size_t micro_batches_;
  std::vector<int> numbers_;
};

/// What passes have in rooms: tapes, and what waits beside them, each in the order of its begin.
struct RoomsOfList {
  std::vector<Lying> tapes, waiting;

  RoomsOfList(const std::vector<TapePass>& passes, const SizesOfTapes& sizes_of) {
    int chunks = 0, micro_batches = 0;
    for (const TapePass& pass : passes) {
      chunks = std::max(chunks, pass.chunk + 1);
      micro_batches = std::max(micro_batches, pass.micro_batch + 1);
    }
    RoomNumbers tape_of(chunks, micro_batches), waiting_of(chunks, micro_batches);
    for (int place = 0; place < static_cast<int>(passes.size()); ++place) {
      const TapePass& pass = passes[place];
      const PassTraits& traits = traits_of_pass(pass.kind);
      int &tape = tape_of.of(pass), &beside = waiting_of.of(pass);
      const Lying begun{.whose = {pass.chunk, pass.micro_batch}, .begin = place, .arena = pass.arena};
      if (traits.travel == Travel::forward && tape < 0) {
        tape = static_cast<int>(tapes.size());
        tapes.push_back(begun);
      } else if (traits.travel == Travel::backward && traits.is_half() && beside < 0) {
        beside = static_cast<int>(waiting.size());
        waiting.push_back(begun);
      }
      tapes[tape].end = place;
      if (beside >= 0) waiting[beside].end = place;
    }
    std::vector<std::optional<TapeSizes>> sizes(2 * static_cast<std::size_t>(chunks));
    const auto size_of = [&](int chunk, bool in_halves) -> const TapeSizes& {
      std::optional<TapeSizes>& known = sizes[2 * chunk + (in_halves ? 1 : 0)];
      if (!known) known = sizes_of(chunk, in_halves);
      return *known;
    };
    for (Lying& tape : tapes) {
      const TapePass whose{.chunk = tape.whose.first, .micro_batch = tape.whose.second};
      tape.bytes = size_of(whose.chunk, waiting_of.of(whose) >= 0).tape;
    }
    for (Lying& one : waiting) one.bytes = size_of(one.whose.first, true).waiting;
  }

  /// Whether each tape has an arena, and none is larger than another.
  bool fill_arenas() const {
    return std::all_of(tapes.begin(), tapes.end(), [&](const Lying& tape) {
      return tape.arena >= 0 && tape.bytes == tapes.front().bytes;
    });
  }

  /// Each arena behind the others.
  std::size_t in_arenas() {
    std::size_t bytes = 0;
    for (Lying& tape : tapes) {
      tape.at = tape.arena * tape.bytes;
      bytes = std::max(bytes, tape.at + tape.bytes);
    }
    return bytes;
  }

  /// Each as low as it can lie: tapes first, or all in the order in which they come. `alike`: each has as
  /// much room as the largest of its kind, so that what comes where another was leaves no gap. Gives the
  /// bytes; where these are not fewer than `most`, some of what lies there is not placed.
  std::size_t lowest(bool tapes_first, bool alike, std::size_t most) {
    Shelf shelf, beside;
    std::vector<std::pair<std::size_t, std::size_t>> taken;
    std::size_t bytes = 0, largest_tape = 0, largest_beside = 0;
    for (const Lying& tape : tapes) largest_tape = std::max(largest_tape, tape.bytes);
    for (const Lying& one : waiting) largest_beside = std::max(largest_beside, one.bytes);
    const auto put = [&](Lying& one, Shelf& there) {
      Lying room = one;
      if (alike) room.bytes = &there == &shelf ? largest_tape : largest_beside;
      one.at = room.at = lowest_free(room, shelf, beside, taken);
      there.put(room);
      bytes = std::max(bytes, one.at + one.bytes);
    };
    auto next = waiting.begin();
    for (Lying& tape : tapes) {
      for (; !tapes_first && next != waiting.end() && next->begin < tape.begin; ++next) put(*next, beside);
      put(tape, shelf);
      if (bytes >= most) return bytes;
    }
    for (; next != waiting.end() && bytes < most; ++next) put(*next, beside);
    return bytes;
  }
};

/// Places what passes have in rooms; bytes of all. `enough`, `most`: as of bytes_of_tapes.
std::size_t put_in_slab(RoomsOfList& best, std::size_t enough,
                        std::size_t most = std::numeric_limits<std::size_t>::max()) {
  if (best.waiting.empty() && best.fill_arenas()) return best.in_arenas();
  std::size_t least = best.lowest(true, false, most);
  for (const auto& [tapes_first, alike] : {std::pair{true, true}, {false, false}, {false, true}}) {
    if (least <= enough) break;
    RoomsOfList other = best;
    const std::size_t bytes = other.lowest(tapes_first, alike, least);
    if (bytes >= least) continue;
    least = bytes;
    best = std::move(other);
  }
  return least;
}

}  // namespace

std::size_t bytes_of_tapes(const std::vector<TapePass>& passes, const SizesOfTapes& sizes_of,
                           std::size_t enough, std::size_t most) {
  RoomsOfList rooms(passes, sizes_of);
  return put_in_slab(rooms, enough, most);
}

TapeSlab place_tapes(const std::vector<Action>& list, const SizesOfTapes& sizes_of) {
  std::vector<TapePass> passes;
  for (const Action& action : list)
    if (is_pass(action)) passes.push_back({action.kind, action.chunk, action.micro_batch, action.tape});
  RoomsOfList rooms(passes, sizes_of);
  TapeSlab slab;
  slab.bytes = put_in_slab(rooms, 0);
  for (const Lying& tape : rooms.tapes) slab.rooms[tape.whose] = {tape.at, tape.at + tape.bytes};
  for (const Lying& one : rooms.waiting) {
    slab.rooms[one.whose].waiting = one.at;
    slab.rooms[one.whose].waiting_end = one.at + one.bytes;
  }
  return slab;
}

void add_segments(TapeSlab& slab, const std::vector<Action>& list,
                  const std::function<std::size_t(int block)>& bytes_of) {
  const auto see = [&](int block, int slot, int place) {
    SegmentRoom& room = slab.segments[block];
    room.slots = std::max(room.slots, slot + 1);
    room.places = std::max(room.places, place + 1);
  };
  for (const Action& action : list) {
    if (action.segment >= 0) see(action.first, action.segment, action.host);
    if (action.to_segment >= 0) see(action.last, action.to_segment, -1);
  }
  for (auto& [block, room] : slab.segments) {
    room.bytes = bytes_of(block);
    room.device = slab.bytes;
    room.host = slab.host_bytes;
    slab.bytes = room.slot(room.slots);
    slab.host_bytes = room.place(room.places);
  }
}

}  // namespace mindpipe
