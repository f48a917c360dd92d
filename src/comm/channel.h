#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/ledger.h"
#include "comm/mpi.h"
#include "comm/waiting.h"
#include "comm/wire.h"
#include "core/bulk_parts.h"
#include "core/port_rule.h"
#include "core/tensor.h"

namespace mindpipe {

/// Name of a channel: messages of one payload that rank `from` sends to rank `to`.
struct ChannelName {
  int from = 0, to = 0, payload = 0;
  auto operator<=>(const ChannelName&) const = default;
};

/// Directed channels: (from, to, payload) is one first-in-first-out stream of messages of its own, a tag of
/// MPI's.
///
/// Both ends list the same messages with the same sizes in the same order. Nothing blocks: messages move in
/// `progress`, in every call that begins one, and in `wait`. Long messages go in parts; a part of a bulk
/// class begins only when no higher class has something on its way out.
class Channels {
 public:
  using Transfer = std::int64_t;  ///< names a message that was begun

  /// Makes channels over `ranks`, which is duplicated; peers are ranks of it, lane by lane. Collective.
  /// `ledger` (may be null) counts traffic. `route`: how the tensors' bytes travel; a send of a counted
  /// tensor ends when its receiver is there. `of_lane`: how many ranks a lane has; 0: all are one.
  /// `part_bytes`: how long the parts of long messages are, alike on all ranks.
  Channels(MPI_Comm ranks, Waiting& waiting, TrafficLedger* ledger = nullptr, const Route& route = {},
           int of_lane = 0, std::int64_t part_bytes = most_part_bytes);

  /// Gives each of these channels a transport of its own: from now on a transfer is put into the device's
  /// current queue, whole, and is done for the host with that. The caller puts the waits for other queues
  /// before and behind it. Channels `of_one_queue` share one among the ranks that they join: each rank puts
  /// all of their messages into one queue, where they would wait for one another anyway. Collective over the
  /// ranks, which name the same.
  void use(Transports& transports, std::vector<ChannelName> channels,
           const std::vector<ChannelName>& of_one_queue = {});

  /// Begins to send; `tensor` must stay as it is until the transfer is done.
  Transfer send(int peer, int payload, const Tensor& tensor, TrafficClass kind = TrafficClass::pipeline);
  /// Lets the next message that is to be sent be lost: a fault to try.
  void lose_next() { loses_next_ = true; }
  /// Begins to receive; nobody may read or write `tensor` until the transfer is done.
  Transfer receive(int peer, int payload, const Tensor& tensor);
  /// Whether the transfer is done, as far as the last progress saw.
  bool done(Transfer transfer) const;
  /// Moves every message as far as possible without waiting.
  void progress();
  /// Goes on with everything until the transfer is done.
  void wait(Transfer transfer);
  /// How many transfers are not done yet.
  std::size_t under_way() const { return sends_.size() + receives_.size(); }
  /// When a transfer that is done was over, in the time of the ports that it passed, if any. Asked once of
  /// each.
  std::optional<std::int64_t> take_end(Transfer transfer);
  /// Says in words what a transfer that is not done waits for.
  std::string describe(Transfer transfer) const;

 private:
  struct Message {
    Transfer name;
    int peer, payload;
    TrafficClass kind;
    std::byte* data;
    std::size_t bytes;
    std::size_t part;                        ///< bytes of each part but the last
    std::size_t begun = 0, arrived = 0;      ///< bytes handed to MPI, and of these done
    std::deque<Wire> parts = {};             ///< begun and not yet done, in order
    std::int64_t moment = 0;                 ///< from which it may pass ports
    std::int64_t ended = 0;                  ///< when the last part had, in the time of ports
    std::optional<std::int64_t> price = {};  ///< time of ports, whatever the bytes, for which parts are turns
    std::int64_t start_ns = now_ns();
    /// The next part's share of the price.
    std::optional<std::int64_t> price_of_part() const {
      if (!price) return {};
      const auto parts = static_cast<int>((bytes + part - 1) / part);
      return of_turn(static_cast<int>(begun / part), parts, *price);
    }
    bool same_channel(const Message& other) const { return peer == other.peer && payload == other.payload; }
  };
  using Messages = std::deque<Message>;
  /// What goes from lane to lane belongs to their axis, all else to the pipeline's.
  Axis axis_to(int peer) const {
    return of_lane_ > 0 && peer / of_lane_ != rank_ / of_lane_ ? Axis::supernet : Axis::pipeline;
  }
  /// Transport of a channel, and the ranks of it that send and receive.
  struct Queued {
    Transport* transport = nullptr;
    int sender = 0, receiver = 1;
  };
  void share(Transports& transports, const std::vector<ChannelName>& channels);
  Transfer put(const ChannelName& channel, const Tensor& tensor);
  std::int64_t moment() const { return route_.ports != nullptr ? route_.ports->moment() : 0; }
  Message& begin(Messages& messages, int peer, int payload, TrafficClass kind, const Tensor& tensor);
  void begin_part(Message& message, bool sending);
  void begin_sends(TrafficClass kind);
  void finish_parts(Message& message, bool sending);
  void finish(Messages& messages, bool sending);

  MpiComm comm_;
  Waiting& waiting_;
  TrafficLedger* ledger_;
  Route route_;
  int rank_ = 0, of_lane_;
  std::int64_t part_bytes_;
  std::vector<int> world_ranks_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::map<ChannelName, Queued> queued_;  ///< this rank's queued channels
  Transfer next_ = 0;
  bool loses_next_ = false;
  Messages sends_, receives_;  ///< ordered as they were asked for
  Inquiry inquiry_;
  std::map<Transfer, std::int64_t> ended_;  ///< in the time of ports; nobody has asked yet
};

}  // namespace mindpipe
