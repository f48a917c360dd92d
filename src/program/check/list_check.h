#pragma once
#include <memory>
#include <optional>

#include "program/causal/own_cuts.h"
#include "program/check/checked_stretch.h"
#include "program/check/move_book.h"
#include "program/check/pass_book.h"
#include "program/check/room_book.h"
#include "program/check/segment_book.h"
#include "program/check/step_book.h"
#include "program/check/subnet_book.h"
#include "program/check/sum_book.h"
#include "program/check/transfer_book.h"
#include "program/check/window_book.h"

namespace mindpipe {

/// Proves the list of one rank sound, action by action, as far as that can be seen on this rank: says what is
/// wrong, one readable line each, empty when all is well.
class ListCheck {
 public:
  /// A step or an evaluation. `slabs`: as StepBook has them.
  ListCheck(const Outline& outline, int rank, std::map<UnitUse, int> slabs);
  /// A supernet's list, from subnet `first` on, as after a drain before it.
  ListCheck(const Outline& outline, const SubnetRules& rules, int rank, std::int64_t first = 0);
  /// A list of forwards, batch behind batch.
  static ListCheck of_forwards(const Outline& outline, int rank);

  /// These subnets may come from now on, and units move for none before `oldest`.
  void know(std::span<const Subnet> more, std::int64_t oldest);
  /// The sequence of communication of all ranks goes on with these, in the next stretch.
  void expect(std::span<const Communication> sequence) { transfers_.expect(sequence); }
  /// So many more batches may come.
  void expect(std::int64_t batches);
  /// What the list goes on with; `last`: behind it nothing may be open.
  std::vector<std::string> check(std::span<const Action> stretch, bool last);
  /// Proves what the list goes on with, or throws the first mistake as one of ours.
  CheckedStretch prove(ListStretch stretch, bool last);

 private:
  ListCheck(const Outline& outline, ListOf of, int rank);
  void see();
  void end();

  std::unique_ptr<Reading> reading_;
  PassBook passes_;
  RoomBook rooms_;
  TransferBook transfers_;
  std::optional<StepBook> step_;
  std::optional<SumBook> sums_;
  std::optional<MoveBook> moves_;
  std::optional<SegmentBook> segments_;
  std::optional<SubnetBook> subnets_;
  std::optional<WindowBook> windows_;
  std::optional<OwnCuts> own_cuts_;
  std::int64_t known_ = 0;  ///< subnets or batches
};

}  // namespace mindpipe
