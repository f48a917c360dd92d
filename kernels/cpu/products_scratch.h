#pragma once
#include "core/memory.h"

namespace mindpipe {

/// The packing memory of all threads: taken at the first product, kept for all that follow.
class ProductScratch {
 public:
  void* bytes(Memory& memory, std::size_t count);

 private:
  Arena arena_;
};

}  // namespace mindpipe
