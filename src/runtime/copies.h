#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend.h"

namespace mindpipe {

/// Copies between a device's memory and the host's, in the order in which they were begun. Those that the
/// host's processor makes move on part by part, wherever messages do, so that no message waits for a whole
/// copy.
class Copies {
 public:
  explicit Copies(Backend& backend) : backend_(backend) {}

  /// Begins a copy, behind which nobody reads `from`. `what`: the kind of action that it is for.
  std::int64_t begin(std::string_view what, const Tensor& from, const Tensor& to);
  bool done(std::int64_t number) const { return number < ended_; }
  /// Makes the next part of the oldest copy under way.
  void progress();
  /// Makes all copies under way, each whole.
  void finish();
  std::string describe(std::int64_t number) const;

 private:
  void move_on(std::int64_t most);
  struct Copy {
    Tensor from, to;
    std::int64_t copied = 0;  ///< bytes
  };

  Backend& backend_;
  std::vector<Copy> open_;
  std::int64_t ended_ = 0;
  bool copies_now_ = false;  ///< the backend calls its hook behind a copy
};

}  // namespace mindpipe
