#pragma once
#include <string_view>
#include <vector>

#include "state/residency.h"

namespace mindpipe {

/// Reads what this rank has of one state (a value, a master, a moment) of its units as words of f32.
class StateReader {
 public:
  StateReader(Backend& backend, const Residency& residency, std::string_view state)
      : backend_(backend), residency_(residency), state_(state) {}
  /// Reads `count` elements of a unit's flat order from `first` on into words that lie `step` words apart;
  /// the words of elements that other data ranks have stay as they are.
  void read(int unit, std::int64_t first, std::int64_t count, std::byte* words, std::int64_t step = 1);

 private:
  void open(int unit);

  Backend& backend_;
  const Residency& residency_;
  std::string_view state_;
  int unit_ = -1;           ///< the one that the rest is about
  Tensor kept_;             ///< what this rank has of the state
  std::int64_t begin_ = 0;  ///< where that begins in the unit's flat order
  const std::byte* data_ = nullptr;
  std::vector<std::byte> copy_;  ///< copy of this rank's state, where the host does not reach it
};

}  // namespace mindpipe
