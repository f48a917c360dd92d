#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace mindpipe {

/// Goes through `count` things round after round, each round in an order of its own; without a seed as they
/// lie.
class Rounds {
 public:
  Rounds(std::int64_t count, std::optional<std::uint64_t> seed) : count_(count), seed_(seed) {}
  std::int64_t count() const { return count_; }
  /// The thing that comes at a place, counted through all rounds.
  std::int64_t at(std::int64_t index);

 private:
  std::int64_t count_;
  std::optional<std::uint64_t> seed_;
  std::int64_t round_ = -1;
  std::vector<std::int64_t> order_;  ///< order of samples in round_
};

}  // namespace mindpipe
