#include "program/check/segment_book.h"

#include "program/swapped_blocks.h"

namespace mindpipe {

SegmentBook::Segment& SegmentBook::segment_of(int block) {
  return segments_[{reading_.action().micro_batch, block}];
}

void SegmentBook::see(const PassBook::Blocks* blocks) {
  const Action& action = reading_.action();
  if (action.kind == ActionKind::stash) return stash();
  if (action.kind == ActionKind::unstash) return unstash();
  if (!is_pass(action) || blocks == nullptr) return;
  if (is_forward(action)) forward(*blocks);
  else if (is_backward(action)) backward();
  else free_behind_weights(*blocks);
}

/// A slot or a place is free once who lay there last has gone.
void SegmentBook::occupy(Place& place, const char* what, int number) {
  if (place.micro_batch >= 0)
    reading_.wrong("takes {} {}, where the segment of micro-batch {} still lies", what, number,
                   place.micro_batch);
  else if (place.freed.exists() && !reading_.has_ended(place.freed))
    reading_.wrong("takes {} {} while {} may still read it", what, number,
                   reading_.text_of(place.freed.place));
  place = {reading_.action().micro_batch, {}};
}

void SegmentBook::take(int block, int slot) {
  Segment& segment = segment_of(block);
  if (slot < 0) return reading_.wrong("names no slot for the segment of block {}", block);
  if (segment.slot >= 0) return reading_.wrong("fills the segment of block {} a second time", block);
  occupy(slots_[{block, slot}], "slot", slot);
  segment = {.slot = slot};
}

void SegmentBook::forward(const PassBook::Blocks& blocks) {
  const Action& action = reading_.action();
  if (is_swapped(reading_.outline, action.first)) {
    if (action.first == blocks.first) take(action.first, action.segment);
    Segment& segment = segment_of(action.first);
    if (segment.slot < 0 || segment.slot != action.segment)
      reading_.wrong("looks for the segment of block {} in slot {}, where its input is not", action.first,
                     action.segment);
    segment.filled = reading_.here();
  } else if (action.segment >= 0) {
    reading_.wrong("names slot {}, but swaps no block", action.segment);
  }
  const bool leaves_for_one = action.last < blocks.last && is_swapped(reading_.outline, action.last);
  if (leaves_for_one) take(action.last, action.to_segment);
  else if (action.to_segment >= 0) reading_.wrong("fills slot {} of no swapped block", action.to_segment);
}

void SegmentBook::backward() {
  const Action& action = reading_.action();
  if (action.to_segment >= 0) reading_.wrong("fills slot {}, but is no forward", action.to_segment);
  if (!is_swapped(reading_.outline, action.first)) {
    if (action.segment >= 0) reading_.wrong("names slot {}, but swaps no block", action.segment);
    return;
  }
  Segment& segment = segment_of(action.first);
  const auto there = slots_.find({action.first, action.segment});
  const bool is_there =
      segment.slot >= 0 && segment.slot == action.segment && there->second.micro_batch == action.micro_batch;
  if (!is_there) return reading_.wrong("looks for its segment in slot {}, where it is not", action.segment);
  if (segment.left.exists() && !reading_.has_ended(segment.back))
    reading_.wrong("does not wait for its segment, which comes from the host");
  segment.is_read = true;
  if (makes_gradients(action)) free_slot(action.first, segment);
}

/// Products that were put off have read their operands once the last of the pass has ended.
void SegmentBook::free_behind_weights(const PassBook::Blocks& blocks) {
  const Action& action = reading_.action();
  if (action.segment >= 0 || action.to_segment >= 0)
    reading_.wrong("is a pass of weights, which names no slot");
  if (action.first != blocks.first) return;
  for (int block = blocks.first; block < blocks.last; ++block) {
    if (!is_swapped(reading_.outline, block)) continue;
    if (Segment& segment = segment_of(block); segment.slot >= 0) free_slot(block, segment);
    else reading_.wrong("reads the segment of block {}, which is not there", block);
  }
}

void SegmentBook::free_slot(int block, Segment& segment) {
  slots_[{block, segment.slot}] = {-1, reading_.here()};
  segment.slot = -1;
}

void SegmentBook::stash() {
  const Action& action = reading_.action();
  Segment& segment = segment_of(action.first);
  if (segment.left.exists()) return reading_.wrong("runs a second time");
  if (segment.is_read) return reading_.wrong("comes behind the backward that reads the segment");
  if (segment.slot < 0 || segment.slot != action.segment)
    return reading_.wrong("looks for a segment in slot {}, where it is not", action.segment);
  if (!reading_.has_ended(segment.filled)) reading_.wrong("does not wait for the forward of its block");
  occupy(hosts_[{action.first, action.host}], "place on the host", action.host);
  free_slot(action.first, segment);
  segment.host = action.host;
  segment.left = reading_.here();
}

void SegmentBook::unstash() {
  const Action& action = reading_.action();
  Segment& segment = segment_of(action.first);
  if (segment.back.exists()) return reading_.wrong("runs a second time");
  if (!segment.left.exists()) return reading_.wrong("comes before its stash");
  if (!reading_.has_ended(segment.left)) reading_.wrong("does not wait for its stash");
  if (segment.host != action.host)
    return reading_.wrong("looks for a segment in place {} on the host, where it is not", action.host);
  occupy(slots_[{action.first, action.segment}], "slot", action.segment);
  hosts_[{action.first, action.host}] = {-1, reading_.here()};
  segment.host = -1;
  segment.slot = action.segment;
  segment.back = reading_.here();
}

void SegmentBook::end() {
  const auto require_free = [&](const std::map<Where, Place>& places, const char* what) {
    for (const auto& [where, place] : places)
      if (place.micro_batch >= 0)
        reading_.missing("{} {} still holds the segment of block {} of micro-batch {}", what, where.second,
                         where.first, place.micro_batch);
  };
  require_free(slots_, "slot");
  require_free(hosts_, "place on the host");
}

}  // namespace mindpipe
