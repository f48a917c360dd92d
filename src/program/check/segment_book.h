#pragma once
#include <map>
#include <tuple>
#include <utility>

#include "program/check/pass_book.h"

namespace mindpipe {

/// Follows the segments of swapped blocks: a forward fills a slot that is free, a backward finds its own
/// micro-batch's segment, which has stayed or has come back, and what is copied out is copied in, once and
/// where nothing else lies.
class SegmentBook {
 public:
  explicit SegmentBook(Reading& reading) : reading_(reading) {}
  /// `blocks`: those of the action's chunk, for a pass or a copy.
  void see(const PassBook::Blocks* blocks);
  /// Here no slot and no place may be held.
  void end();

 private:
  /// A micro-batch's segment of a block.
  struct Segment {
    ListEntry filled;          ///< by the forward's piece of the block
    bool is_read = false;      ///< by a backward
    ListEntry left, back;      ///< copies
    int slot = -1, host = -1;  ///< where it lies; -1: not there
  };
  /// Who lies in a slot of the device or a place of the host; nobody: -1.
  struct Place {
    int micro_batch = -1;
    ListEntry freed;  ///< by whom it was left
  };
  using Where = std::pair<int, int>;  ///< block, and slot or place

  Segment& segment_of(int block);
  void forward(const PassBook::Blocks& blocks);
  void backward();
  void free_behind_weights(const PassBook::Blocks& blocks);
  void take(int block, int slot);
  void occupy(Place& place, const char* what, int number);
  void free_slot(int block, Segment& segment);
  void stash();
  void unstash();

  Reading& reading_;
  std::map<std::pair<int, int>, Segment> segments_;  ///< by micro-batch and block
  std::map<Where, Place> slots_, hosts_;
};

}  // namespace mindpipe
