#include "plan/choose_recomputed.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/tape_bytes.h"

namespace mindpipe {
namespace {

constexpr std::int64_t most_combinations = 100000;

/// Blocks of a chunk that cost alike, the lowest first.
struct Alike {
  std::vector<int> blocks;
  std::int64_t more_time = 0, less_bytes = 0;
};

/// One stage, and what becomes of its blocks.
class StageChoice {
 public:
  StageChoice(const Outline& kept, const Outline& again, const std::vector<int>& in_flight, int stage)
      : kept_(kept), in_flight_(in_flight), chosen_(kept.all_blocks(), 0) {
    std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>, Alike> alike;
    for (int chunk = 0; chunk < kept.all_chunks(); ++chunk) {
      if (kept.rank_of(chunk) != stage) continue;
      chunks_.push_back(chunk);
      for (int block = kept.first_block[chunk]; block < kept.first_block[chunk + 1]; ++block) {
        const std::int64_t time = time_of(again, block) - time_of(kept, block),
                           saved = kept.cost(block).saved, enters = kept.cuts[block].activation;
        if (time <= 0 || saved <= enters) continue;
        Alike& kind = alike[{chunk, time, saved, enters}];
        kind.blocks.push_back(block);
        kind.more_time = time;
        kind.less_bytes = saved - enters;
      }
    }
    for (auto& [key, kind] : alike) kinds_.push_back(std::move(kind));
  }

  /// Makes the choice; whether one fits.
  bool fit(std::int64_t room) {
    std::int64_t combinations = 1;
    for (const Alike& kind : kinds_) {
      combinations *= static_cast<std::int64_t>(kind.blocks.size()) + 1;
      if (combinations > most_combinations) return fit_by_worth(room);
    }
    best_time_ = -1;
    try_all(0, 0, room);
    if (best_time_ >= 0) chosen_ = best_;
    return best_time_ >= 0;
  }
  bool has(int block) const { return chosen_[block] != 0; }

 private:
  static std::int64_t time_of(const Outline& outline, int block) {
    return outline.cost(block).forward + outline.cost(block).backward;
  }

  /// Bytes of the tapes with the present choice.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const int chunk : chunks_)
      sum += in_flight_[chunk] *
             tape_bytes(kept_, kept_.first_block[chunk], kept_.first_block[chunk + 1], [this](int block) {
               return has(block);
             }).most;
    return sum;
  }

  void try_all(std::size_t kind, std::int64_t time, std::int64_t room) {
    if (best_time_ >= 0 && time >= best_time_) return;
    if (kind == kinds_.size()) {
      if (bytes() > room) return;
      best_time_ = time;
      best_ = chosen_;
      return;
    }
    const Alike& alike = kinds_[kind];
    try_all(kind + 1, time, room);
    for (std::size_t count = 0; count < alike.blocks.size(); ++count) {
      chosen_[alike.blocks[count]] = 1;
      time += alike.more_time;
      try_all(kind + 1, time, room);
    }
    for (const int block : alike.blocks) chosen_[block] = 0;
  }

  /// Computes again what costs the least time for each byte, until the rest fits.
  bool fit_by_worth(std::int64_t room) {
    std::vector<Alike> order = kinds_;
    std::stable_sort(order.begin(), order.end(), [](const Alike& a, const Alike& b) {
      return static_cast<double>(a.more_time) * static_cast<double>(b.less_bytes) <
             static_cast<double>(b.more_time) * static_cast<double>(a.less_bytes);
    });
    if (bytes() <= room) return true;
    for (const Alike& kind : order)
      for (const int block : kind.blocks) {
        chosen_[block] = 1;
        if (bytes() <= room) return true;
      }
    return false;
  }

  const Outline& kept_;
  const std::vector<int>& in_flight_;
  std::vector<int> chunks_;
  std::vector<Alike> kinds_;
  std::vector<char> chosen_, best_;
  std::int64_t best_time_ = -1;
};

}  // namespace

std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const ChosenBlocks& recomputed) {
  std::vector<std::int64_t> bytes(outline.stages, 0);
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    bytes[outline.rank_of(chunk)] +=
        in_flight[chunk] *
        tape_bytes(outline, outline.first_block[chunk], outline.first_block[chunk + 1], [&](int block) {
          return recomputed.has(block);
        }).most;
  return bytes;
}

std::optional<ChosenBlocks> choose_recomputed(const Outline& kept, const Outline& again,
                                              const std::vector<int>& in_flight,
                                              const std::vector<std::int64_t>& room) {
  std::vector<int> numbers;
  for (int stage = 0; stage < kept.stages; ++stage) {
    StageChoice choice(kept, again, in_flight, stage);
    if (!choice.fit(room[stage])) return std::nullopt;
    for (int block = 0; block < kept.all_blocks(); ++block)
      if (choice.has(block)) numbers.push_back(block);
  }
  std::sort(numbers.begin(), numbers.end());
  return ChosenBlocks(std::move(numbers));
}

}  // namespace mindpipe
