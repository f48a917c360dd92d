#include "program/subnets_in_flight.h"

#include <algorithm>

#include "core/check.h"

namespace mindpipe {
namespace {

void add_sums(TensorSums& sums, const TensorSums& more) {
  sums.calls += more.calls;
  sums.bytes += more.bytes;
}

}  // namespace

SubnetsInFlight::SubnetsInFlight(const Outline& outline, const Link& over_data, std::int64_t first)
    : outline_(outline),
      over_data_(over_data),
      stages_(outline.stages),
      micro_batches_(outline.micro_batches),
      blocks_(outline.all_blocks()),
      newest_(outline.units.size()),
      first_(first),
      known_(first),
      oldest_(first) {
  for (int block = 0; block < blocks_; ++block) {
    stage_of_.push_back(outline.rank_of_block(block));
    most_units_ = std::max(most_units_, static_cast<int>(outline.parts(block).size()));
  }
}

void SubnetsInFlight::add(const Subnet& subnet) {
  MP_CHECK(subnet.id == known_, "subnet {} comes where {} is next", subnet.id, known_);
  ++known_;
  work_.resize(work_.size() + stages_);
  slots_.resize(slots_.size() + static_cast<std::size_t>(stages_ * micro_batches_), -1);
  uses_.resize(uses_.size() + static_cast<std::size_t>(blocks_ * most_units_));
  stages_left_.push_back(stages_);
  for (int block = 0; block < blocks_; ++block) {
    const int stage = stage_of_[block];
    StageWork& work = at(subnet.id, stage);
    int number = 0;
    outline_.for_candidates(subnet.choice, block, [&](int candidate) {
      const BlockCost& cost = outline_.cost(block, candidate);
      work.forward += cost.forward;
      work.backward += cost.backward;
      add_sums(work.forward_sums, cost.forward_sums);
      add_sums(work.backward_sums, cost.backward_sums);
      for (const int unit : outline_.units_used[block][candidate])
        if (!outline_.units[unit].shared) add_use(subnet.id, block, number++, unit);
    });
  }
}

/// Notes that a subnet uses a unit, and who used it before.
void SubnetsInFlight::add_use(std::int64_t id, int block, int number, int unit) {
  MP_CHECK(number < most_units_, "block {}: a subnet with {} units, and at most {} are expected", block,
           number + 1, most_units_);
  const int stage = stage_of_[block];
  StageWork& work = at(id, stage);
  use(id, block, number).unit = unit;
  work.update += outline_.units[unit].update;
  if (outline_.data > 1) work.sum += sum_time(unit);
  User& newest = newest_[unit];
  if (newest.id >= first_ && !at(newest.id, stage).updated) {
    use(newest.id, newest.block, newest.number).next = id;
    ++work.missing;
  }
  newest = {id, block, number};
}

void SubnetsInFlight::note_update(std::int64_t id, int stage) {
  at(id, stage).updated = true;
  for (int block = outline_.first_block[stage]; block < outline_.first_block[stage + 1]; ++block)
    for (int number = 0; number < most_units_; ++number)
      if (const std::int64_t next = use(id, block, number).next; next >= 0) --at(next, stage).missing;
  --stages_left_[id - first_];
  while (oldest_ < known_ && stages_left_[oldest_ - first_] == 0) ++oldest_;
}

void SubnetsInFlight::forget() {
  const auto drop = [&](auto& entries, std::int64_t of_each) {
    entries.erase(entries.begin(), entries.begin() + (oldest_ - first_) * of_each);
  };
  drop(work_, stages_);
  drop(slots_, stages_ * micro_batches_);
  drop(uses_, std::int64_t{blocks_} * most_units_);
  drop(stages_left_, 1);
  first_ = oldest_;
}

}  // namespace mindpipe
