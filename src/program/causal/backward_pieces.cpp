#include "program/causal/backward_pieces.h"

#include "program/choice_parts.h"

namespace mindpipe {

BackwardPieces::BackwardPieces(const Outline& outline, const PriceList& prices,
                               const SubnetsInFlight& subnets)
    : outline_(outline),
      prices_(prices),
      subnets_(subnets),
      first_(subnets.known()),
      rest_(outline.ranks()) {}

void BackwardPieces::add(const Subnet& subnet) {
  if (outline_.data == 1) return;
  for (int block = 0; block < outline_.all_blocks(); ++block) {
    PassWork& work = works_.emplace_back();
    for_candidates(outline_, subnet.choice, block, [&](int candidate) {
      work.add(outline_.cost(block, candidate), traits_of_pass(ActionKind::backward));
      for (const int unit : outline_.units_used[block][candidate])
        if (!outline_.units[unit].shared) work.clear += outline_.units[unit].clear;
    });
  }
}

void BackwardPieces::forget(std::int64_t oldest) {
  if (outline_.data > 1)
    works_.erase(works_.begin(), works_.begin() + (oldest - first_) * outline_.all_blocks());
  first_ = oldest;
}

bool BackwardPieces::divides(const Task& backward) const {
  return outline_.data > 1 && backward.micro_batch + 1 == outline_.micro_batches &&
         has_units(backward.owner.number, backward.first, backward.last);
}

bool BackwardPieces::take(int rank, Task& task) {
  Task& rest = rest_[rank];
  if (rest.first == rest.last) return false;
  task = rest;
  const std::int64_t subnet = rest.owner.number;
  for (task.first = rest.last - 1; task.first > rest.first && !has_units(subnet, task.first, rest.last);)
    --task.first;
  if (!has_units(subnet, rest.first, task.first)) task.first = rest.first;
  rest.last = task.first;
  task.goes_on = rest.first < rest.last;
  const PassWork of_piece = work(subnet, task.first, task.last);
  task.sums = of_piece.sums;
  task.take(prices_.pass(outline_.stage_of_rank(rank), of_piece, task.clears));
  return true;
}

std::int64_t BackwardPieces::rest(int rank) const {
  const Task& rest = rest_[rank];
  if (rest.first == rest.last) return 0;
  return prices_
      .pass(outline_.stage_of_rank(rank), work(rest.owner.number, rest.first, rest.last), rest.clears)
      .lasts;
}

bool BackwardPieces::has_units(std::int64_t subnet, int first, int last) const {
  for (int block = first; block < last; ++block)
    if (subnets_.users().unit(subnet, block, 0) >= 0) return true;
  return false;
}

PassWork BackwardPieces::work(std::int64_t subnet, int first, int last) const {
  PassWork all;
  for (int block = first; block < last; ++block)
    all += works_[static_cast<std::size_t>((subnet - first_) * outline_.all_blocks() + block)];
  return all;
}

}  // namespace mindpipe
