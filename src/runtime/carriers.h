#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "comm/channel.h"
#include "comm/paper_ports.h"
#include "comm/reduction.h"
#include "program/clock/simulate.h"
#include "runtime/copies.h"
#include "runtime/cursors.h"

namespace mindpipe {

/// What a rank is wired to. Channels are none where there is one stage.
struct Wires {
  Channels* channels = nullptr;
  Reductions& reductions;
  Waiting& waiting;
  PaperPorts* ports = nullptr;       ///< where a device is imitated: what messages and sums pass
  const Network* network = nullptr;  ///< there: the network that plans were made for
};

/// Carriers of what an action has only begun: messages, sums over data, copies. A request says where to ask
/// how far it has come.
class Carriers {
 public:
  Carriers(const Wires& wires, Backend& backend) : wires_(wires), copies_(backend) {}

  Request send(int peer, int channel, const Tensor& message, TrafficClass priority) {
    return {Request::channels, wires_.channels->send(peer, channel, message, priority)};
  }
  Request receive(int peer, int channel, const Tensor& message) {
    return {Request::channels, wires_.channels->receive(peer, channel, message)};
  }
  /// Where sums and gathers are begun.
  Reductions& reductions() { return wires_.reductions; }
  /// Begins copies for an action of this kind, from the first to the second of each way; or makes them at
  /// once.
  Request copy(ActionKind kind, std::span<const std::pair<Tensor, Tensor>> ways, bool at_once);

  /// Whether one more sum or gather may begin beside what is under way.
  bool may_begin(const Action& action) const {
    return !is_collective(action) || wires_.reductions.may_begin(class_of(action));
  }
  /// Whether what was begun has ended, as far as the last progress saw.
  bool is_done(const Request& request) const;
  /// When what was begun and is done had passed the ports, if any. Asked once.
  std::optional<std::int64_t> take_end(const Request& request);
  /// Moves what has been begun.
  void progress();
  /// Whose share is missing of what was begun and has not ended, in words; empty: it has.
  std::string describe(const Request& request) const;

 private:
  Wires wires_;
  Copies copies_;
};

}  // namespace mindpipe
