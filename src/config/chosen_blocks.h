#pragma once
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "config/kinds.h"
#include "core/text.h"

namespace mindpipe {

/// Blocks for which something is chosen, as that their forward is computed again in the backward: none, all
/// for which it can be, or some.
struct ChosenBlocks {
  WhichBlocks kind = WhichBlocks::none;
  std::vector<int> numbers = {};  ///< some blocks, ascending, as in schedule.cuts; empty: all

  ChosenBlocks() = default;
  ChosenBlocks(WhichBlocks all_or_none) : kind(all_or_none) {}
  explicit ChosenBlocks(std::vector<int> some)
      : kind(some.empty() ? WhichBlocks::none : WhichBlocks::block), numbers(std::move(some)) {}

  bool any() const { return kind != WhichBlocks::none; }
  bool are_some() const { return !numbers.empty(); }
  bool has(int block) const {
    return any() && (numbers.empty() || std::binary_search(numbers.begin(), numbers.end(), block));
  }
  /// How many there are at most.
  int count() const {
    return !any() ? 0 : are_some() ? static_cast<int>(numbers.size()) : std::numeric_limits<int>::max();
  }
  /// none, block, or [1, 4]: as a file has it.
  std::string text() const {
    return are_some() ? fmt::format("[{}]", joined(numbers)) : std::string(name_of(kind));
  }
  bool operator==(const ChosenBlocks&) const = default;
  friend auto operator<=>(const ChosenBlocks& a, const ChosenBlocks& b) {
    return std::tuple(a.count(), a.numbers) <=> std::tuple(b.count(), b.numbers);
  }
};

}  // namespace mindpipe
