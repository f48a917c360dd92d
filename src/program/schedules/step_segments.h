#pragma once
#include <optional>
#include <vector>

#include "program/clock/prices.h"
#include "program/schedules/segment_turns.h"
#include "program/schedules/step_tasks.h"
#include "program/swapped_blocks.h"

namespace mindpipe {

/// The segments of one rank's swapped blocks in its lines: which slots the pieces of passes find, what they
/// wait for, and the copies between the passes.
class StepSegments {
 public:
  /// `passes`: of this rank, in order. All stay as they are, but for the lines.
  StepSegments(const Outline& outline, const PriceList& prices, int rank, const std::vector<Pass>& passes,
               StepTasks& made)
      : outline_(outline),
        prices_(prices),
        rank_(rank),
        made_(made),
        turns_(outline, passes),
        places_(turns_.lives().size()) {}

  /// Names the slots of a forward's or a backward's piece; gives back the copy that it waits for.
  StepNeed find(Task& piece) const;
  /// Hears where such a piece stands in the rank's line, or the last piece of a pass that travels nowhere.
  void stands(const Task& piece, int place);
  /// Adds the copies that begin behind a pass whose pieces stand in their line. `tape_of`: by chunk and
  /// micro-batch.
  void add_copies(int pass, const std::map<std::pair<int, int>, int>& tape_of);

 private:
  /// Where pieces and copies of a segment stand in their lines.
  struct Places {
    int forward = -1, last = -1, stash = -1, unstash = -1;
  };
  std::vector<StepItem>& line(int& number);
  Task copy(TaskKind kind, const SegmentLife& life, int slot, int tape) const;
  bool finds_segment(const Task& piece) const { return is_swapped(outline_, piece.first); }
  int life_of(const Task& piece, int block) const {
    return turns_.life_of(piece.chunk, piece.micro_batch, block);
  }

  const Outline& outline_;
  const PriceList& prices_;
  int rank_;
  StepTasks& made_;
  SegmentTurns turns_;
  std::vector<Places> places_;
  int out_ = -1, in_ = -1;  ///< lines of copies
};

}  // namespace mindpipe
