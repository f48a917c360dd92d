#include "comm/exchange.h"

namespace mindpipe {

void combine_tree(std::span<const Tensor> leaves, const Tensor& root, const Combine& combine) {
  const std::size_t n = leaves.size();
  for (std::size_t stride = 1; stride < n; stride *= 2)
    for (std::size_t i = 0; i + stride < n; i += 2 * stride)
      combine(leaves[i], leaves[i + stride], 2 * stride >= n ? root : leaves[i]);
}

Exchange::Exchange(Group& group, Halves halves, std::vector<Tensor> parts, void* scratch, Combine combine,
                   const Route& route, const Tensor& own)
    : group_(&group),
      messages_(group, route),
      halves_(halves),
      parts_(std::move(parts)),
      scratch_(static_cast<std::byte*>(scratch)),
      combine_(std::move(combine)),
      tag_(2 * group.next_exchange()) {
  MP_CHECK(static_cast<int>(parts_.size()) == group.size(), "an exchange of {} parts in a group of {}",
           parts_.size(), group.size());
  own_ = own ? own : parts_[group.rank()];
  MP_CHECK(own_.count() == parts_[group.rank()].count() && (!own || halves == Halves::scatter),
           "a result of {} elements for a part of {}", own_.count(), parts_[group.rank()].count());
}

bool Exchange::advance() {
  if (stage_ == Stage::fresh) {
    if (halves_ == Halves::gather) begin_gather();
    else begin_scatter();
  }
  if (stage_ == Stage::scattering && messages_.done()) {
    finish_scatter();
    if (halves_ == Halves::both) begin_gather();
    else stage_ = Stage::done;
  }
  if (stage_ == Stage::gathering && messages_.done()) stage_ = Stage::done;
  return stage_ == Stage::done;
}

void Exchange::begin_scatter() {
  const int rank = group_->rank();
  const Tensor& own = parts_[rank];
  std::byte* slot = scratch_;
  for (int peer = 0; peer < group_->size(); ++peer) {
    Tensor leaf = own;
    if (peer != rank) {
      leaf.data = slot;
      slot += whole_cache_lines(own.bytes());
      messages_.receive(leaf.data, leaf.bytes(), peer, tag_);
    }
    leaves_.push_back(leaf);
  }
  // Each rank begins with its right neighbour, so that no rank is everybody's first.
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    messages_.send(parts_[peer].data, parts_[peer].bytes(), peer, tag_);
  }
  stage_ = Stage::scattering;
}

void Exchange::finish_scatter() {
  if (own_.count() > 0) combine_tree(leaves_, own_, combine_);
}

void Exchange::begin_gather() {
  const int rank = group_->rank();
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    messages_.receive(parts_[peer].data, parts_[peer].bytes(), peer, tag_ + 1);
  }
  for (int step = 1; step < group_->size(); ++step) {
    const int peer = (rank + step) % group_->size();
    messages_.send(parts_[rank].data, parts_[rank].bytes(), peer, tag_ + 1);
  }
  stage_ = Stage::gathering;
}

}  // namespace mindpipe
