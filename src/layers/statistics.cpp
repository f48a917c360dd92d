#include "layers/statistics.h"

namespace mindpipe {

NetworkStatistics::NetworkStatistics(Memory& memory, const std::map<int, std::size_t>& bytes_of_blocks) {
  for (const auto& [block, bytes] : bytes_of_blocks)
    arenas_.emplace(block, Arena(memory, MemoryClass::values, bytes));
}

void NetworkStatistics::enter(int block) {
  block_ = block;
  if (const auto found = arenas_.find(block); found != arenas_.end()) found->second.release(0);
}

}  // namespace mindpipe
