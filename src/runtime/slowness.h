#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// What makes a rank slower than it is, for tests of those who look for slow ranks and links. Steps are
/// counted from 1, as in metrics.
class Slowness {
 public:
  static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  /// Passes and updates take `factor` times as long from a step up to a last one, in every so many-th step;
  /// each of them once more exp(scatter x a normal deviate) times as long.
  struct Work {
    std::int64_t from = 1, last = no_end, every = 1;
    double factor = 1, scatter = 0;
  };
  /// Two micro-batches beside each other take 1 + x and 1 - x times as long, from a step up to a last one; x
  /// lies between -share and share. Ranks that are told the same have the same x.
  struct MicroBatches {
    std::int64_t from = 1, last = no_end;
    double share = 0;
    std::uint64_t seed = 0;
  };
  /// Messages from a peer in the program's lists come so much later, from a step up to a last one.
  struct Link {
    std::int64_t from = 1, last = no_end;
    int peer = 0;
    std::int64_t later_ns = 0;
  };

  /// `seed`: makes scatter a function of rank, step and action.
  explicit Slowness(std::uint64_t seed = 0) : seed_(seed) {}
  void add(const Work& work) { works_.push_back(work); }
  void add(const MicroBatches& micro_batches) { micro_batches_.push_back(micro_batches); }
  void add(const Link& link) { links_.push_back(link); }
  bool slows_work() const { return !works_.empty() || !micro_batches_.empty(); }
  bool slows_links() const { return !links_.empty(); }

  /// By how much longer an action takes that computes for so long; below 0: shorter. `index`: its number in
  /// the list.
  std::int64_t longer(std::int64_t step, const Action& action, int index, std::int64_t computes_ns) const;
  /// By how much later a message is here.
  std::int64_t later(std::int64_t step, const Action& receive) const;

 private:
  std::uint64_t seed_;
  std::vector<Work> works_;
  std::vector<MicroBatches> micro_batches_;
  std::vector<Link> links_;
};

}  // namespace mindpipe
