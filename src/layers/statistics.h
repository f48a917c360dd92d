#pragma once
#include <map>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace mindpipe {

/// What the batch norms of a rank's blocks have collected of one network of a supernet, on the micro-batches
/// that it was calibrated on. A block has memory for those of its largest candidate, one after the other in
/// the order in which its forward comes to them.
class NetworkStatistics {
 public:
  /// `bytes_of_blocks`: of each block that has some.
  NetworkStatistics(Memory& memory, const std::map<int, std::size_t>& bytes_of_blocks);

  /// Says that the forward of a block begins.
  void enter(int block);
  /// The place of the block's next batch norm.
  Tensor take(const Shape& shape, DType dtype) { return arenas_.at(block_).take(shape, dtype); }

 private:
  std::map<int, Arena> arenas_;
  int block_ = -1;
};

}  // namespace mindpipe
