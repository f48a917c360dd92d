#include "plan/choose_tapes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "plan/tape_bytes.h"

namespace mindpipe {
namespace {

constexpr std::int64_t most_combinations = 100000;

/// Slots that a swapped block has on the device, of micro-batches in flight.
std::int64_t slots_of(int in_flight) { return std::min(in_flight, 2); }

/// Blocks of a chunk that cost alike, the lowest first.
struct Alike {
  std::vector<int> blocks;
  std::int64_t more_time = 0;  ///< time that computing it again takes; 0: it cannot be
  std::int64_t less_bytes = 0;
  std::int64_t copied = 0;  ///< bytes of its segment; 0: it is not swapped
  double time_of_byte() const { return static_cast<double>(more_time) / static_cast<double>(less_bytes); }
};

/// What a choice costs a stage: the longer of its passes and its copies, then what is copied.
using Cost = std::pair<double, std::int64_t>;

/// One stage, and what becomes of its blocks.
class StageChoice {
 public:
  StageChoice(const Outline& kept, const Outline& again, const std::vector<int>& in_flight, int stage,
              const TapeRules& rules)
      : kept_(kept), in_flight_(in_flight), rules_(rules), chosen_(kept.all_blocks(), TapeFate::kept) {
    std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>, Alike> alike;
    for (int chunk = 0; chunk < kept.all_chunks(); ++chunk) {
      if (kept.rank_of(chunk) != stage) continue;
      chunks_.push_back(chunk);
      for (int block = kept.first_block[chunk]; block < kept.first_block[chunk + 1]; ++block) {
        const std::int64_t more = time_of(again, block) - time_of(kept, block),
                           saved = kept.cost(block).saved, enters = kept.cuts[block].activation;
        passes_ += time_of(kept, block);
        if (more <= 0 || saved <= enters) continue;
        Alike& kind = alike[{chunk, more, saved, enters}];
        kind.blocks.push_back(block);
        kind.more_time = rules.recomputes ? more : 0;
        kind.less_bytes = saved - enters;
        kind.copied = rules.hidden > 0 && in_flight[chunk] > 1 ? kept.bytes_in_segment(block) : 0;
      }
    }
    for (auto& [key, kind] : alike) kinds_.push_back(std::move(kind));
  }

  /// Makes the choice; whether one fits.
  bool fit(std::int64_t room) {
    std::int64_t combinations = 1;
    for (const Alike& kind : kinds_) {
      const auto blocks = static_cast<std::int64_t>(kind.blocks.size());
      combinations *= kind.copied > 0 && kind.more_time > 0 ? (blocks + 1) * (blocks + 2) / 2 : blocks + 1;
      if (combinations > most_combinations) return fit_by_worth(room);
    }
    try_all(0, 0, 0, room);
    if (best_) chosen_ = best_->second;
    return best_.has_value();
  }
  TapeFate fate_of(int block) const { return chosen_[block]; }

 private:
  static std::int64_t time_of(const Outline& outline, int block) {
    return outline.cost(block).forward + outline.cost(block).backward;
  }

  /// Bytes of the tapes with the present choice.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const int chunk : chunks_) {
      const int first = kept_.first_block[chunk], last = kept_.first_block[chunk + 1];
      sum += in_flight_[chunk] * tape_bytes(
                                     kept_, first, last,
                                     [this](int block) { return fate_of(block) == TapeFate::again; }, false,
                                     [this](int block) { return fate_of(block) == TapeFate::away; })
                                     .most;
      for (int block = first; block < last; ++block)
        if (fate_of(block) == TapeFate::away)
          sum += slots_of(in_flight_[chunk]) * kept_.bytes_in_segment(block);
    }
    return sum;
  }

  Cost cost_of(std::int64_t again, std::int64_t copied) const {
    const double passes = static_cast<double>(passes_ + again);
    if (copied == 0) return {passes, 0};
    return {std::max(passes, static_cast<double>(rules_.copies.carries(copied)) / rules_.hidden), copied};
  }

  void try_all(std::size_t kind, std::int64_t again, std::int64_t copied, std::int64_t room) {
    const Cost cost = cost_of(again, copied);
    if (best_ && cost >= best_->first) return;
    if (kind == kinds_.size()) {
      if (bytes() <= room) best_.emplace(cost, chosen_);
      return;
    }
    const Alike& alike = kinds_[kind];
    const std::size_t count = alike.blocks.size(), most_away = alike.copied > 0 ? count : 0;
    for (std::size_t away = 0; away <= most_away; ++away) {
      for (std::size_t i = 0; i < count; ++i)
        chosen_[alike.blocks[i]] = i < away ? TapeFate::away : TapeFate::kept;
      const std::int64_t copies = copied + static_cast<std::int64_t>(away) * alike.copied;
      try_all(kind + 1, again, copies, room);
      for (std::size_t more = away; more < count && alike.more_time > 0; ++more) {
        chosen_[alike.blocks[more]] = TapeFate::again;
        try_all(kind + 1, again + static_cast<std::int64_t>(more + 1 - away) * alike.more_time, copies, room);
      }
    }
    for (const int block : alike.blocks) chosen_[block] = TapeFate::kept;
  }

  /// Swaps what costs the most time for each byte if it is computed again, while copies are hidden; then
  /// computes again what costs the least, until the rest fits.
  bool fit_by_worth(std::int64_t room) {
    std::vector<Alike> order = kinds_;
    std::stable_sort(order.begin(), order.end(),
                     [](const Alike& a, const Alike& b) { return a.time_of_byte() > b.time_of_byte(); });
    if (bytes() <= room) return true;
    std::int64_t copied = 0;
    for (const Alike& kind : order)
      for (const int block : kind.blocks) {
        if (kind.copied == 0 || cost_of(0, copied + kind.copied).first > static_cast<double>(passes_)) break;
        copied += kind.copied;
        chosen_[block] = TapeFate::away;
        if (bytes() <= room) return true;
      }
    std::reverse(order.begin(), order.end());
    for (const Alike& kind : order)
      for (const int block : kind.blocks) {
        if (kind.more_time == 0 || fate_of(block) == TapeFate::away) continue;
        chosen_[block] = TapeFate::again;
        if (bytes() <= room) return true;
      }
    return false;
  }

  const Outline& kept_;
  const std::vector<int>& in_flight_;
  const TapeRules& rules_;
  std::vector<int> chunks_;
  std::vector<Alike> kinds_;
  std::vector<TapeFate> chosen_;
  std::optional<std::pair<Cost, std::vector<TapeFate>>> best_;
  std::int64_t passes_ = 0;  ///< time of a forward and a backward of the stage
};

}  // namespace

std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const TapeChoice& choice) {
  std::vector<std::int64_t> bytes(outline.stages, 0);
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    std::int64_t& stage = bytes[outline.rank_of(chunk)];
    const int first = outline.first_block[chunk], last = outline.first_block[chunk + 1];
    stage +=
        in_flight[chunk] * tape_bytes(
                               outline, first, last, [&](int block) { return choice.recompute.has(block); },
                               false, [&](int block) { return choice.swap.has(block); })
                               .most;
    for (int block = first; block < last; ++block)
      if (choice.swap.has(block)) stage += slots_of(in_flight[chunk]) * outline.bytes_in_segment(block);
  }
  return bytes;
}

std::optional<TapeChoice> choose_tapes(const Outline& kept, const Outline& again,
                                       const std::vector<int>& in_flight,
                                       const std::vector<std::int64_t>& room, const TapeRules& rules) {
  std::vector<int> recomputed, swapped;
  for (int stage = 0; stage < kept.stages; ++stage) {
    StageChoice choice(kept, again, in_flight, stage, rules);
    if (!choice.fit(room[stage])) return std::nullopt;
    for (int block = 0; block < kept.all_blocks(); ++block) {
      if (choice.fate_of(block) == TapeFate::again) recomputed.push_back(block);
      if (choice.fate_of(block) == TapeFate::away) swapped.push_back(block);
    }
  }
  std::sort(recomputed.begin(), recomputed.end());
  std::sort(swapped.begin(), swapped.end());
  return TapeChoice{ChosenBlocks(std::move(recomputed)), ChosenBlocks(std::move(swapped))};
}

}  // namespace mindpipe
