#pragma once
#include <utility>

#include "program/list_stretch.h"

namespace mindpipe {

/// A stretch that was proved sound. Only the proof makes one, and a script takes no other, so no list runs
/// unchecked.
class CheckedStretch {
 public:
  CheckedStretch() = default;
  const std::vector<Action>& actions() const { return stretch_.actions; }
  const std::vector<std::int64_t>& times() const { return stretch_.times; }
  /// Hands the stretch over to be run.
  ListStretch take() { return std::move(stretch_); }

 private:
  friend class ListCheck;
  friend struct Unproved;  ///< what tests put in its place
  explicit CheckedStretch(ListStretch stretch) : stretch_(std::move(stretch)) {}

  ListStretch stretch_;
};

}  // namespace mindpipe
