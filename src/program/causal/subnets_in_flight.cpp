#include "program/causal/subnets_in_flight.h"

#include "core/check.h"
#include "program/choice_parts.h"

namespace mindpipe {

SubnetsInFlight::SubnetsInFlight(const Outline& outline, const PriceList& prices, std::int64_t first)
    : outline_(outline),
      own_cuts_(outline),
      prices_(prices),
      users_(outline, first),
      stages_(outline.stages),
      micro_batches_(outline.micro_batches),
      first_(first),
      known_(first),
      oldest_(first) {
  for (int rank = 0; rank < outline.ranks(); ++rank) stage_of_.push_back(outline.stage_of_rank(rank));
  for (int lane = 0; lane < outline.lanes; ++lane)
    oldest_of_lane_.push_back(first + (lane - first % outline.lanes + outline.lanes) % outline.lanes);
}

void SubnetsInFlight::add(const Subnet& subnet) {
  MP_CHECK(subnet.id == known_, "subnet {} comes where {} is next", subnet.id, known_);
  ++known_;
  work_.resize(work_.size() + stages_);
  slots_.resize(slots_.size() + static_cast<std::size_t>(stages_ * micro_batches_), -1);
  stages_left_.push_back(stages_);
  users_.add_subnet();
  const std::vector<int>& cut = own_cuts_.of(subnet.choice);
  cuts_.insert(cuts_.end(), cut.begin(), cut.end());
  for (int stage = 0; stage < stages_; ++stage) {
    const int rank = outline_.rank_of_subnet(subnet.id, stage);
    StageProgress& progress = at(subnet.id, rank);
    for (int block = cut[stage]; block < cut[stage + 1]; ++block) {
      int number = 0;
      for_candidates(outline_, subnet.choice, block, [&](int candidate) {
        const BlockCost& cost = outline_.cost(block, candidate);
        progress.forward.add(cost, traits_of_pass(ActionKind::forward));
        progress.backward.add(cost, traits_of_pass(ActionKind::backward));
        for (const int unit : outline_.units_used[block][candidate]) {
          if (outline_.units[unit].shared) continue;
          prices_.add(progress.update, unit);
          progress.backward.clear += outline_.units[unit].clear;
          if (users_.add_use(subnet.id, block, number++, unit, rank)) ++progress.missing;
        }
      });
    }
  }
}

void SubnetsInFlight::end_stage(std::int64_t id) {
  --stages_left_[id - first_];
  const auto has_ended = [&](std::int64_t one) { return one < known_ && stages_left_[one - first_] == 0; };
  while (has_ended(oldest_)) ++oldest_;
  std::int64_t& of_lane = oldest_of_lane_[id % outline_.lanes];
  while (has_ended(of_lane)) of_lane += outline_.lanes;
}

void SubnetsInFlight::forget() {
  const auto drop = [&](auto& entries, std::int64_t of_each) {
    entries.erase(entries.begin(), entries.begin() + (oldest_ - first_) * of_each);
  };
  drop(work_, stages_);
  drop(slots_, stages_ * micro_batches_);
  drop(stages_left_, 1);
  drop(cuts_, stages_ + 1);
  users_.forget(oldest_);
  first_ = oldest_;
}

}  // namespace mindpipe
