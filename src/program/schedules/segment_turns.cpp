#include "program/schedules/segment_turns.h"

#include <deque>

#include "program/schedules/lowest_free.h"
#include "program/swapped_blocks.h"

namespace mindpipe {
namespace {

/// Slots that a block has where some of its segments leave: one is filled or read while the other travels.
constexpr int slots_of_copies = 2;

/// The slots of one block on the device.
class Slots {
 public:
  /// Who lay in a slot, and whether it left for the host.
  struct Free {
    int slot = -1, before = -1;
    bool left = false;
  };
  explicit Slots(bool has_copies) : at_least_(has_copies ? slots_of_copies : 1) {}

  bool has_free() const { return !free_.empty() || count_ < at_least_; }
  /// A new slot while there are few, else the one that has been free for longest, else a new one.
  Free take() {
    if (count_ < at_least_ || free_.empty()) return {count_++};
    const Free first = free_.front();
    free_.pop_front();
    return first;
  }
  void give_back(const Free& slot) { free_.push_back(slot); }

 private:
  int at_least_, count_ = 0;
  std::deque<Free> free_;
};

}  // namespace

SegmentTurns::SegmentTurns(const Outline& outline, const std::vector<Pass>& passes)
    : leaving_(passes.size()), coming_back_(passes.size()) {
  find_lives(outline, passes);
  take_turns(static_cast<int>(passes.size()));
}

void SegmentTurns::find_lives(const Outline& outline, const std::vector<Pass>& passes) {
  for (int place = 0; place < static_cast<int>(passes.size()); ++place) {
    const Pass& pass = passes[place];
    for (int block = outline.first_block[pass.chunk]; block < outline.first_block[pass.chunk + 1]; ++block) {
      if (!is_swapped(outline, block)) continue;
      const auto [known, is_new] =
          places_.try_emplace({pass.chunk, pass.micro_batch, block}, static_cast<int>(lives_.size()));
      if (is_new)
        lives_.push_back(
            {.chunk = pass.chunk, .micro_batch = pass.micro_batch, .block = block, .forward = place});
      SegmentLife& life = lives_[known->second];
      if (traits_of_pass(pass.kind).travel == Travel::backward) life.backward = place;
      life.last = place;
    }
  }
  for (SegmentLife& life : lives_) life.is_stashed = life.backward > life.forward + 1;
}

void SegmentTurns::take_turns(int passes) {
  std::vector<std::vector<int>> filled(passes), read(passes + 1), freed(passes);
  std::map<int, bool> has_copies;
  for (int number = 0; number < static_cast<int>(lives_.size()); ++number) {
    const SegmentLife& life = lives_[number];
    has_copies[life.block] = has_copies[life.block] || life.is_stashed;
    filled[life.forward].push_back(number);
    read[life.backward].insert(read[life.backward].begin(), number);  // the highest block goes back first
    freed[life.last].push_back(number);
  }
  std::map<int, Slots> slots;
  std::map<int, LowestFree> hosts;
  for (const auto& [block, copies] : has_copies) slots.try_emplace(block, copies);
  const auto come_back = [&](int place, bool only_where_free) {
    for (const int number : read[place + 1]) {
      SegmentLife& life = lives_[number];
      Slots& own = slots.at(life.block);
      if (!life.is_stashed || life.slot_back >= 0 || (only_where_free && !own.has_free())) continue;
      const Slots::Free there = own.take();
      life.slot_back = there.slot;
      (there.left ? life.back_waits : life.back_behind) = there.before;
      coming_back_[place].push_back(number);
    }
  };
  for (int place = 0; place < passes; ++place) {
    for (const int number : filled[place]) {
      SegmentLife& life = lives_[number];
      const Slots::Free there = slots.at(life.block).take();
      life.slot = there.slot;
      life.forward_waits = there.left ? there.before : -1;
      if (life.is_stashed) life.host = hosts[life.block].take();
    }
    come_back(place, true);
    for (const int number : filled[place])
      if (const SegmentLife& life = lives_[number]; life.is_stashed) {
        slots.at(life.block).give_back({life.slot, number, true});
        leaving_[place].push_back(number);
      }
    for (const int number : read[place])
      if (lives_[number].is_stashed) hosts[lives_[number].block].give_back(lives_[number].host);
    for (const int number : freed[place]) {
      const SegmentLife& life = lives_[number];
      slots.at(life.block).give_back({life.is_stashed ? life.slot_back : life.slot, number, false});
    }
    come_back(place, false);
  }
}

}  // namespace mindpipe
