#pragma once
#include <cstdint>
#include <string>

#include "core/random.h"

namespace mindpipe {

/// Numbers that follow from a name and a case alone, the same on every rank.
class Lots {
 public:
  Lots(const std::string& name, int number)
      : stream_{.seed = 5, .purpose = purpose_of(name), .sample = static_cast<std::uint32_t>(number)} {}
  int below(int count) { return static_cast<int>(stream_.word(drawn_++) % static_cast<unsigned>(count)); }
  /// Whether a chance of one in so many comes true.
  bool once_in(int count) { return below(count) == 0; }

 private:
  RandomStream stream_;
  std::uint64_t drawn_ = 0;
};

}  // namespace mindpipe
