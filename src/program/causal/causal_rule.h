#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/causal/backward_pieces.h"
#include "program/causal/causal_windows.h"
#include "program/causal/messages_in_flight.h"
#include "program/causal/moves_in_flight.h"
#include "program/causal/rooms_in_flight.h"
#include "program/causal/subnets_in_flight.h"
#include "program/causal/update_turns.h"

namespace mindpipe {

/// Decides which subnet goes next on each rank: of all that may begin, updates first, then backwards, then
/// forwards, and of each the oldest subnet's. What it has decided once does not depend on how many subnets it
/// knew.
class CausalRule final : public Source {
 public:
  /// Begins with subnet `first`, a multiple of the window, as after a drain before it.
  CausalRule(const Outline& outline, const PriceList& prices, SubnetRules rules, std::int64_t first = 0);
  CausalRule(const CausalRule&) = delete;
  CausalRule& operator=(const CausalRule&) = delete;

  /// More subnets are known; with `last`, no other follows before a drain.
  void add(std::span<const Subnet> more, bool last, Clock& clock);

  bool open(Clock& clock) override;
  Answer next(int rank, const Clock& clock, Task& task, WaitReason& why) override;
  void ended(const Task& task, Clock& clock) override;
  bool at_rest(Clock& clock) override;

  const SubnetsInFlight& subnets() const { return subnets_; }
  const RoomsInFlight& rooms() const { return rooms_; }
  /// Why subnets have not ended though nothing is under way, in words; empty: all have.
  std::string standstill() const;

 private:
  struct Rank {
    std::vector<std::int64_t> to_forward, to_backward;  ///< subnets with one to begin, in order of ids
  };

  std::string awaited_by(std::int64_t id, int rank) const;
  std::size_t drawn(std::size_t count);
  Task of_subnet(TaskKind kind, std::int64_t id, int rank) const;
  bool next_update(int rank, Task& task);
  bool next_backward(int rank, Task& task, WaitReason& why);
  Answer next_forward(int rank, const Clock& clock, Task& task, WaitReason& why);
  bool holds_back(int rank, std::int64_t forward, const Clock& clock) const;
  void arrive(const Task& message, Clock& clock);
  void end_backward(const Task& pass, Clock& clock);
  void sum(const Task& pass, Clock& clock);
  void end_update(const Task& update, Clock& clock);

  const Outline& outline_;
  const PriceList& prices_;
  SubnetRules rules_;
  SubnetsInFlight subnets_;
  BackwardPieces pieces_;
  RoomsInFlight rooms_;
  UpdateTurns turns_;
  CausalWindows windows_;
  UnitLists units_;
  MovesInFlight moves_;
  MessagesInFlight messages_;
  std::vector<Rank> ranks_;
  std::int64_t admitted_;
  std::uint64_t drawn_ = 0;  ///< numbers, where the order is drawn
};

}  // namespace mindpipe
