#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "program/causal/subnets_in_flight.h"
#include "program/clock/clock.h"

namespace mindpipe {

/// What subnets send from stage to stage. A rank has a few buffers each way from which messages leave.
class MessagesInFlight {
 public:
  static constexpr int ring_depth = 2;  ///< buffers

  MessagesInFlight(const Outline& outline, const PriceList& prices, SubnetsInFlight& subnets);

  /// Whether a pass of this direction finds a buffer for what it leaves to the next stage.
  bool has_buffer(int rank, bool with_forward) const {
    return ranks_[rank].leaving[with_forward] < ring_depth;
  }
  /// Puts what a pass has left to the neighbour that goes on with it.
  void send(const Task& pass, bool with_forward, Clock& clock);
  /// A message has arrived: its subnet may go on at the receiver.
  void end(const Task& message) { --ranks_[message.rank].leaving[message.with_forward]; }
  /// How long one takes where it meets no other.
  std::int64_t lasts(int rank, bool with_forward) const { return ranks_[rank].price[with_forward].lasts; }

 private:
  struct Rank {
    std::array<int, 2> leaving{};  ///< messages backwards, forwards that have not arrived
    std::array<Price, 2> price{};  ///< price of one
  };

  SubnetsInFlight& subnets_;
  std::vector<Rank> ranks_;
};

}  // namespace mindpipe
