#pragma once
#include "operations/operands.h"

/// Ranges of flat tensors that an operation takes one after the other, or in one launch of a GPU.
namespace mindpipe {

/// Ranges that one launch takes at most.
inline constexpr int most_spans = 64;

/// Elements [first, first + count) of flat tensors.
struct FlatSpan {
  std::int64_t first = 0, count = 0;
};

inline void require_within(const FlatSpan& span, const Tensor& whole, const char* operation) {
  MP_CHECK(span.first >= 0 && span.count >= 0 && span.first + span.count <= whole.count(),
           "{}: elements {}..{} of {}", operation, span.first, span.first + span.count, whole.count());
}

}  // namespace mindpipe
