#pragma once
#include <vector>

#include "cuda/device/group.h"
#include "operations/flat_spans.h"

/// Several ranges of flat tensors in one launch: each has blocks of its own, those of the next come behind.
namespace mindpipe::cuda {

/// Ranges by value among a kernel's arguments, each with what belongs to it alone.
template <class Of>
struct SpanTable {
  int spans = 0;
  int first_block[most_spans];
  int64_t first[most_spans], count[most_spans];
  Of of[most_spans];
  bool wide[most_spans];  ///< whether wide accesses may begin at its first element
};

/// What belongs to a range that has nothing of its own.
struct Alone {};

/// This block's range, and which of the range's blocks it is.
struct SpanBlock {
  int span, block;
};
template <class Of>
__device__ inline SpanBlock span_of_block(const SpanTable<Of>& table) {
  const int block = static_cast<int>(blockIdx.x);
  int span = 0, behind = table.spans;  // the last range that begins at or before this block
  while (behind - span > 1) {
    const int middle = (span + behind) / 2;
    if (table.first_block[middle] <= block) span = middle;
    else behind = middle;
  }
  return {span, block - table.first_block[span]};
}

/// Calls body(element of the flat tensors, Whole or Some) for this thread's group of its range, if it has
/// one.
template <int size, class Of, class Body>
__device__ inline void for_group_of_span(const SpanTable<Of>& table, SpanBlock here, const Body& body) {
  const int64_t i = (static_cast<int64_t>(here.block) * group_threads + threadIdx.x) * size,
                left = table.count[here.span] - i, element = table.first[here.span] + i;
  if (left <= 0) return;
  if (table.wide[here.span] && left >= size) body(element, Whole{});
  else body(element, Some{static_cast<int>(left < size ? left : size)});
}

/// Calls start(blocks, table) for as many ranges as a table has room for, until all have had their turn.
/// `each`: elements of a block; of(span): what belongs to it; wide(first): whether wide accesses may begin
/// there. Ranges without elements are passed over.
template <class Of, class Span, class OfSpan, class IsWide, class Start>
void in_tables(const std::vector<Span>& spans, int64_t each, const OfSpan& of, const IsWide& wide,
               const Start& start) {
  SpanTable<Of> table{};
  int64_t blocks = 0;
  const auto end = [&] {
    if (table.spans > 0) start(blocks, table);
    table.spans = 0;
    blocks = 0;
  };
  for (const Span& span : spans) {
    if (span.count == 0) continue;
    const int at = table.spans++;
    table.first_block[at] = static_cast<int>(blocks);
    table.first[at] = span.first;
    table.count[at] = span.count;
    table.of[at] = of(span);
    table.wide[at] = wide(span.first);
    blocks += blocks_for(span.count, each);
    if (table.spans == most_spans) end();
  }
  end();
}

}  // namespace mindpipe::cuda
