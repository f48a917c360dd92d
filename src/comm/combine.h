#pragma once
#include <functional>
#include <span>

#include "backend.h"
#include "core/sum_tree.h"

namespace mindpipe {

/// sum = a combined with b, a from the lower ranks; `sum` may be a or b.
using CombineTwo = std::function<void(const Tensor& a, const Tensor& b, const Tensor& sum)>;

/// Combines sums along a part of the tree over them. What the last addition makes goes to `root`, unless that
/// is none; it may be the memory of any of them. Where the additions leave several, each takes the place of
/// its first. The other sums are used up.
using Combine =
    std::function<void(std::span<const Tensor> sums, std::span<const Addition> tree, const Tensor& root)>;

/// Combines two at a time, addition by addition.
void combine_tree(std::span<const Tensor> sums, std::span<const Addition> tree, const Tensor& root,
                  const CombineTwo& combine);
inline Combine by_pairs(CombineTwo combine) {
  return [combine = std::move(combine)](auto sums, auto tree, const Tensor& root) {
    combine_tree(sums, tree, root, combine);
  };
}
/// Adds up on a backend, which outlives it: in one operation that reads each sum once and writes the root
/// alone, where it takes this tree, else by pairs. The bits are the same.
Combine sums_on(Backend& backend);

}  // namespace mindpipe
