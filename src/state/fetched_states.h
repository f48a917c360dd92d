#pragma once
#include <utility>
#include <vector>

#include "program/state_slots.h"
#include "state/decisions.h"

namespace mindpipe {

/// Slots of the device into which masters and moments come that are kept on the host, each in its turn.
class FetchedStates {
 public:
  /// What a copy goes from, and to.
  using Ways = std::vector<std::pair<Tensor, Tensor>>;

  /// Takes slots for these units' states.
  void allocate(Memory& memory, const Optimizers& shares) {
    StateSlots slots;
    for (const auto& [unit, share] : shares) slots.add(static_cast<std::int64_t>(share->bytes()));
    arena_ = Arena(memory, MemoryClass::optimizer, static_cast<std::size_t>(slots.bytes()));
    while (std::ssize(slots_) < slots.count) slots_.push_back(arena_.take({slots.largest}, DType::u8));
  }
  /// A unit's masters and moments come into the next slot.
  Ways ways_of_fetch(UnitOptimizer& share) {
    if (share.bytes() == 0) return {};
    share.take_slot(slots_[fetches_++ % slots_.size()].data);
    return share.fetched();
  }
  /// They go back to the host.
  static Ways ways_of_evict(const UnitOptimizer& share) {
    Ways ways = share.fetched();
    for (auto& [kept, here] : ways) std::swap(kept, here);
    return ways;
  }

 private:
  Arena arena_;
  std::vector<Tensor> slots_;
  std::size_t fetches_ = 0;
};

}  // namespace mindpipe
