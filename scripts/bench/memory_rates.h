#pragma once
#include "bench_blocks.h"

namespace mindpipe::bench {

/// Bytes a second, in 1e9, that one thread moves between memory and blocks that no cache holds: of a copy,
/// whose bytes count as read and as written, and of reading alone.
class MemoryRates {
 public:
  MemoryRates();
  void measure();
  double copy() const { return median(copies_); }
  double read() const { return median(reads_); }

 private:
  Block<char> from_, to_;
  std::vector<double> copies_, reads_;
};

}  // namespace mindpipe::bench
