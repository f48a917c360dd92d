#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace mindpipe {

/// The shortest step that any order of the passes can reach on equal stages with free traffic and no limit on
/// tapes: all orders are tried, in the order of their starts, and given up when the work that is left cannot
/// beat the best. For small sizes only.
class Optimum {
 public:
  /// Times are of one chunk; `weight` 0: the backward is not split.
  Optimum(int stages, int chunks, int micro_batches, std::int64_t forward, std::int64_t backward,
          std::int64_t weight)
      : stages_(stages),
        micro_batches_(micro_batches),
        time_{forward, backward, weight},
        free_at_(stages, 0),
        chunks_(stages * chunks) {
    for (Chunk& chunk : chunks_)
      for (auto& ends : chunk.ends) ends.assign(micro_batches, 0);
    left_ = static_cast<int>(chunks_.size()) * micro_batches * (weight > 0 ? 3 : 2);
    for (int stage = 0; stage < stages; ++stage)
      free_at_[stage] = stage * forward;  // its first input comes no earlier
  }
  std::int64_t step() {
    extend(0);
    return best_;
  }

 private:
  enum Pass { forward, backward, weight };
  struct Chunk {
    int done[3] = {0, 0, 0};
    std::vector<std::int64_t> ends[3];
  };
  struct Choice {
    std::int64_t start;
    int chunk;
    Pass pass;
  };

  std::int64_t left(int stage, Pass pass) const {
    int passes = 0;
    for (std::size_t chunk = stage; chunk < chunks_.size(); chunk += stages_)
      passes += micro_batches_ - chunks_[chunk].done[pass];
    return passes * time_[pass];
  }

  /// A time before which no order of what is left ends: a stage has to run its own, and behind that lie those
  /// of the stages before it, of which the first still owes the weights.
  std::int64_t bound() const {
    std::int64_t bound = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      const std::int64_t weights = left(stage, weight), backwards = left(stage, backward),
                         passes = left(stage, forward) + backwards;
      bound = std::max(bound, free_at_[stage] + passes + weights);
      if (backwards > 0)
        bound = std::max(bound, free_at_[stage] + passes + stage * time_[backward] + time_[weight]);
    }
    return bound;
  }

  /// Whether the next `pass` of `chunk` has its input, and since when.
  bool may_run(int chunk, Pass pass, std::int64_t& since) const {
    const Chunk& here = chunks_[chunk];
    const int next = here.done[pass], last = static_cast<int>(chunks_.size()) - 1;
    if (next == micro_batches_ || (pass == weight && time_[weight] == 0)) return false;
    const auto after = [&](const Chunk& other, Pass input) {
      since = std::max(since, other.done[input] > next ? other.ends[input][next] : 0);
      return other.done[input] > next;
    };
    if (pass == forward) return chunk == 0 || after(chunks_[chunk - 1], forward);
    if (pass == weight) return after(here, backward);
    return after(here, forward) && (chunk == last || after(chunks_[chunk + 1], backward));
  }

  void extend(std::int64_t newest_start) {
    const std::int64_t bound = this->bound();
    if (left_ == 0) best_ = std::min(best_, bound);
    if (bound >= best_) return;
    std::vector<Choice> choices;
    for (int chunk = 0; chunk < static_cast<int>(chunks_.size()); ++chunk)
      for (Pass pass : {weight, backward, forward}) {
        std::int64_t start = free_at_[chunk % stages_];
        if (may_run(chunk, pass, start) && start >= newest_start) choices.push_back({start, chunk, pass});
      }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.start < b.start; });
    for (const Choice& choice : choices) {
      Chunk& chunk = chunks_[choice.chunk];
      std::int64_t& free_at = free_at_[choice.chunk % stages_];
      const std::int64_t before = free_at;
      free_at = choice.start + time_[choice.pass];
      chunk.ends[choice.pass][chunk.done[choice.pass]++] = free_at;
      --left_;
      extend(choice.start);
      ++left_;
      --chunk.done[choice.pass];
      free_at = before;
    }
  }

  int stages_, micro_batches_;
  int left_ = 0;  ///< passes
  std::int64_t time_[3];
  std::vector<std::int64_t> free_at_;
  std::vector<Chunk> chunks_;
  std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace mindpipe
