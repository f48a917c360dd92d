#pragma once
#include <map>
#include <tuple>
#include <utility>

#include "program/clock/task.h"
#include "program/lists/ledger.h"
#include "program/swapped_blocks.h"

namespace mindpipe {

/// Where a rank's list has the segments of swapped blocks: on the device and in the host's memory.
class SegmentRooms {
 public:
  explicit SegmentRooms(const Outline& outline) : outline_(outline) {}

  /// A piece of a forward fills its segment and begins the next one; passes behind it read what is there.
  void pass(const Task& task, const Ledger& ledger, std::int64_t place, Action& action) {
    action.segment = task.segment;
    action.to_segment = task.to_segment;
    if (!is_forward(action)) {
      for (int block = task.first; block < task.last; ++block)
        if (is_swapped(outline_, block))
          ledger.read(device_[{block, slots_[{task.chunk, task.micro_batch, block}]}], place, action);
      return;
    }
    if (task.segment >= 0) {
      slots_[{task.chunk, task.micro_batch, task.first}] = task.segment;
      ledger.write(device_[{task.first, task.segment}], place, action);
    }
    if (task.to_segment >= 0) ledger.write(device_[{task.last, task.to_segment}], place, action);
  }

  /// A segment leaves its slot for the host's memory, or comes back to one.
  void copy(const Task& task, const Ledger& ledger, std::int64_t place, Action& action) {
    const bool comes = shape_of<CopyTraits>(action)->comes;
    action.tape = task.slot;
    action.segment = task.segment;
    action.host = task.host;
    action.bytes = bytes_in_segment(outline_, task.first);
    Room &here = device_[{task.first, task.segment}], &there = host_[{task.first, task.host}];
    ledger.read(comes ? there : here, place, action);
    ledger.write(comes ? here : there, place, action);
    if (comes) slots_[{task.chunk, task.micro_batch, task.first}] = task.segment;
  }

 private:
  const Outline& outline_;
  std::map<std::pair<int, int>, Room> device_, host_;  ///< by block, and slot or place
  std::map<std::tuple<int, int, int>, int> slots_;     ///< by chunk, micro-batch and block
};

}  // namespace mindpipe
