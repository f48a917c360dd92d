#pragma once
#include "cpu/simd/rows.h"

/// Walks over columns by strips of vectors, so that sums over rows stay in registers.
namespace mindpipe::MINDPIPE_ISA {

/// So many whole vectors beside each other.
template <int vectors>
struct Strip {};

/// Calls body(column, Strip, Whole or Some) for columns [first, last): strips of four vectors, then of one.
template <class T, class Body>
MINDPIPE_INLINE void for_strips(std::int64_t first, std::int64_t last, const Body& body) {
  constexpr int wide = 4, width = lanes_of<T>;
  std::int64_t j = first;
  for (; j + wide * width <= last; j += wide * width) body(j, Strip<wide>{}, Whole{});
  for (; j + width <= last; j += width) body(j, Strip<1>{}, Whole{});
  if (j < last) body(j, Strip<1>{}, Some{static_cast<int>(last - j)});
}

}  // namespace mindpipe::MINDPIPE_ISA
