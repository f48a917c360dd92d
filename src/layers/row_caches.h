#pragma once
#include <map>

#include "core/check.h"
#include "core/memory.h"

namespace mindpipe {

/// What layers keep of earlier rows while texts are continued, made at first use and kept for the whole
/// generation.
class RowCaches {
 public:
  /// `arena`: null where nothing is generated.
  explicit RowCaches(Arena* arena) : arena_(arena) {}

  Tensor of(const void* layer, const Shape& shape, DType dtype) {
    MP_CHECK(arena_ != nullptr, "this tape has no memory for caches");
    Tensor& t = caches_[layer];
    if (!t) t = arena_->take(shape, dtype);
    return t;
  }

 private:
  Arena* arena_;
  std::map<const void*, Tensor> caches_;
};

}  // namespace mindpipe
