#include "comm/combine.h"

namespace mindpipe {

void combine_tree(std::span<const Tensor> sums, std::span<const Addition> tree, const Tensor& root,
                  const CombineTwo& combine) {
  for (const Addition& addition : tree) {
    const Tensor& left = sums[addition.left];
    combine(left, sums[addition.right], root && &addition == &tree.back() ? root : left);
  }
}

Combine sums_on(Backend& backend) {
  return [&backend](std::span<const Tensor> sums, std::span<const Addition> tree, const Tensor& root) {
    if (root && sums.size() > 2) {
      AddTreeOperands all{{sums.begin(), sums.end()}, joins_of(tree, static_cast<int>(sums.size())), root};
      if (all.is_one_tree()) return backend.add_tree(all);
    }
    combine_tree(sums, tree, root, [&](const Tensor& a, const Tensor& b, const Tensor& sum) {
      backend.add({a, b, sum});
    });
  };
}

}  // namespace mindpipe
