#include "comm/exchange.h"

namespace mindpipe {

Exchange::Exchange(Group& group, const SumTree& tree, Halves halves, Pieces pieces, std::vector<Pieces> roots,
                   void* scratch, Combine combine, const Route& route, const Tensor& own)
    : group_(&group),
      tree_(&tree),
      messages_(group, route),
      halves_(halves),
      pieces_(std::move(pieces)),
      roots_(std::move(roots)),
      scratch_(static_cast<std::byte*>(scratch)),
      combine_(std::move(combine)),
      tag_(2 * group.next_exchange()) {
  MP_CHECK(static_cast<int>(pieces_.size()) == group.size(), "an exchange of {} pieces in a group of {}",
           pieces_.size(), group.size());
  MP_CHECK(roots_.size() == (halves == Halves::gather ? 0 : tree.roots().size()),
           "a rank that has {} roots brings {}", tree.roots().size(), roots_.size());
  own_ = own ? own : pieces_[group.rank()];
  MP_CHECK(own_.count() == pieces_[group.rank()].count() && (!own || halves == Halves::scatter),
           "a result of {} elements for a part of {}", own_.count(), pieces_[group.rank()].count());
}

bool Exchange::advance() {
  if (stage_ == Stage::fresh) {
    if (halves_ == Halves::gather) begin_gather();
    else begin_scatter();
  }
  if (stage_ == Stage::scattering && messages_.done() &&
      (!gated_ || group_->waiting().gate().open_for(*gated_))) {
    finish_scatter();
    if (halves_ == Halves::both) begin_gather();
    else stage_ = Stage::done;
  }
  if (stage_ == Stage::gathering && messages_.done()) stage_ = Stage::done;
  return stage_ == Stage::done;
}

void Exchange::begin_scatter() {
  const int rank = group_->rank();
  std::byte* at = scratch_;
  for (int peer = 0; peer < group_->size(); ++peer)
    for (int root = 0; root < tree_->roots_of(peer); ++root) {
      if (peer == rank) {
        sums_.push_back(roots_[root][rank]);
        continue;
      }
      Tensor& sum = sums_.emplace_back(pieces_[rank]);
      sum.data = at;
      at += whole_cache_lines(sum.bytes());
      messages_.receive(sum.data, sum.bytes(), peer, tag_);
    }
  // Each rank begins with its right neighbour, so that no rank is everybody's first.
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    for (const Pieces& root : roots_) messages_.send(root[peer].data, root[peer].bytes(), peer, tag_);
  }
  stage_ = Stage::scattering;
}

void Exchange::finish_scatter() {
  if (own_.count() > 0) combine_(sums_, tree_->of_roots(), own_);
}

void Exchange::begin_gather() {
  const int rank = group_->rank();
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    messages_.receive(pieces_[peer].data, pieces_[peer].bytes(), peer, tag_ + 1);
  }
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    messages_.send(pieces_[rank].data, pieces_[rank].bytes(), peer, tag_ + 1);
  }
  stage_ = Stage::gathering;
}

}  // namespace mindpipe
