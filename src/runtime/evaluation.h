#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "backend.h"

namespace mindpipe {

/// What an evaluation has found, the same on every rank. Targets that do not count, and samples of such
/// alone, are left out of every share; shares of nothing are 0.
struct Evaluation {
  double losses = 0;         ///< added up over the targets
  std::int64_t targets = 0;  ///< targets that count
  std::array<std::int64_t, Hits::places> hits{};

  void add(const Evaluation& other) {
    losses += other.losses;
    targets += other.targets;
    for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += other.hits[i];
  }
  double loss() const { return targets == 0 ? 0 : losses / static_cast<double>(targets); }
  double perplexity() const { return std::exp(loss()); }
  /// Shares of the targets whose logit is the largest, or among the five largest.
  double accuracy() const { return share(hits[Hits::right], targets); }
  double within_five() const { return share(hits[Hits::within_five], targets); }
  /// Share of the samples whose every target is right.
  double exact() const { return share(hits[Hits::exact], samples()); }
  std::int64_t samples() const { return hits[Hits::samples]; }
  bool operator==(const Evaluation&) const = default;

 private:
  static double share(std::int64_t part, std::int64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
  }
};

/// What is found of batches together, added up in their order.
inline Evaluation sum_of(std::span<const Evaluation> of_batches) {
  Evaluation sum;
  for (const Evaluation& of_batch : of_batches) sum.add(of_batch);
  return sum;
}

}  // namespace mindpipe
