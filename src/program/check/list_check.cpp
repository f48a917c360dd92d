#include "program/check/list_check.h"

#include "core/give_way.h"
#include "program/check/check_fields.h"
#include "program/check/checker.h"
#include "program/choice_parts.h"
#include "program/swapped_blocks.h"

namespace mindpipe {
namespace {

/// The uses of units in blocks [first, last) of a subnet, block by block.
std::vector<UnitUse> uses_of(const Outline& outline, const Subnet& subnet, int first, int last) {
  std::vector<UnitUse> uses;
  for (int block = first; block < last; ++block)
    for_candidates(outline, subnet.choice, block, [&](int candidate) {
      for (const int unit : outline.units_used[block][candidate]) uses.push_back({unit, block});
    });
  return uses;
}

}  // namespace

ListCheck::ListCheck(const Outline& outline, ListOf of, int rank)
    : reading_(std::make_unique<Reading>(outline, of, rank)),
      passes_(*reading_),
      rooms_(*reading_),
      transfers_(*reading_) {}

ListCheck::ListCheck(const Outline& outline, int rank, std::map<UnitUse, int> slabs)
    : ListCheck(outline, ListOf::step, rank) {
  if (outline.training) step_.emplace(*reading_, std::move(slabs));
  if (outline.training) sums_.emplace(*reading_);
  if (outline.moves_blocks()) moves_.emplace(*reading_);
  if (outline.training && swaps_blocks(outline)) segments_.emplace(*reading_);
  passes_.expect(0, outline.first_block);
}

ListCheck::ListCheck(const Outline& outline, const SubnetRules& rules, int rank, std::int64_t first)
    : ListCheck(outline, ListOf::subnets, rank) {
  subnets_.emplace(*reading_, rules, first);
  windows_.emplace(*reading_, rules, first);
  sums_.emplace(*reading_);
  own_cuts_.emplace(outline);
  known_ = first;
}

ListCheck ListCheck::of_forwards(const Outline& outline, int rank) {
  return ListCheck(outline, ListOf::forwards, rank);
}

void ListCheck::know(std::span<const Subnet> more, std::int64_t oldest) {
  const Outline& outline = reading_->outline;
  subnets_->forget(oldest);
  for (const Subnet& subnet : more) {
    const std::vector<int>& cut = own_cuts_->of(subnet.choice);
    subnets_->know(subnet, cut);
    if (subnet.id % outline.lanes == outline.lane_of_rank(reading_->rank)) {
      const int stage = outline.stage_of_rank(reading_->rank);
      passes_.expect(subnet.id, cut);
      sums_->expect(subnet.id, cut[stage], cut[stage + 1],
                    uses_of(outline, subnet, cut[stage], cut[stage + 1]));
    }
    windows_->know(known_ = subnet.id + 1);
  }
}

void ListCheck::expect(std::int64_t batches) {
  for (; batches > 0; --batches) passes_.expect(known_++, reading_->outline.first_block);
}

std::vector<std::string> ListCheck::check(std::span<const Action> stretch, bool last) {
  reading_->extend(stretch);
  check_fields(*reading_, stretch);
  if (reading_->findings.empty()) {
    while (reading_->next()) {
      give_way();
      see();
    }
    transfers_.end_of_sequence();
    if (last) end();
  }
  return reading_->findings.take();
}

CheckedStretch ListCheck::prove(ListStretch stretch, bool last) {
  require_sound(check(stretch.actions, last));
  return CheckedStretch(std::move(stretch));
}

void ListCheck::see() {
  const Action& action = reading_->action();
  transfers_.see();
  const PassBook::Blocks* const blocks =
      is_pass(action) || copies_segment(action) ? passes_.blocks_of(action) : nullptr;
  const bool ends_pass =
      is_pass(action) && blocks != nullptr && (is_forward(action) || action.first == blocks->first);
  rooms_.see(blocks);
  passes_.see();
  if (step_) step_->see();
  if (sums_) sums_->see();
  if (moves_) moves_->see();
  if (segments_) segments_->see(blocks);
  if (!subnets_) return;
  if (action.queue == Queue::compute) subnets_->see_computing();
  if (!windows_->is_of_shared(action)) subnets_->see();
  windows_->see(ends_pass);
}

void ListCheck::end() {
  transfers_.end();
  passes_.end();
  rooms_.end();
  if (step_) step_->end();
  if (sums_) sums_->end();
  if (moves_) moves_->end();
  if (segments_) segments_->end();
  if (subnets_) subnets_->end();
  if (windows_) windows_->end();
}

}  // namespace mindpipe
