#pragma once
#include <cstdint>
#include <fstream>
#include <string>

namespace mindpipe {

/// By how much this process's resident memory has grown at its peak since this object was made.
class PeakGrowth {
 public:
  PeakGrowth() {
    std::ofstream("/proc/self/clear_refs") << "5\n";  // the peak begins anew with what is resident now
    begin_ = kilobytes("VmRSS:");
    is_known_ = begin_ > 0 && kilobytes("VmHWM:") - begin_ < 1024;
  }
  std::int64_t bytes() const { return (kilobytes("VmHWM:") - begin_) * 1024; }
  /// Whether this system forgets earlier peaks.
  bool is_known() const { return is_known_; }

 private:
  static std::int64_t kilobytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == key) {
        std::int64_t value = 0;
        status >> value;
        return value;
      }
    return -1;
  }

  std::int64_t begin_ = 0;
  bool is_known_ = false;
};

}  // namespace mindpipe
