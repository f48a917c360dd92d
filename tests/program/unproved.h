#pragma once
#include "program/check/checked_stretch.h"

namespace mindpipe {

/// Lets a test run a list that no checker would take: pieces cut anywhere, actions made up.
struct Unproved {
  static CheckedStretch taken(ListStretch stretch) { return CheckedStretch(std::move(stretch)); }
};

}  // namespace mindpipe
