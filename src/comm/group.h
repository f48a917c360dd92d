#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "comm/transport.h"
#include "comm/waiting.h"
#include "comm/wire.h"

namespace mindpipe {

/// Ranks that exchange bytes, in a space of messages of their own.
class Group {
 public:
  /// Makes a group of `ranks`, which it duplicates. Collective. `waiting` is this rank's and outlives the
  /// group.
  Group(MPI_Comm ranks, Waiting& waiting);
  /// Lets tensors travel by `transport`, which is among the same ranks, from now on.
  void use(std::unique_ptr<Transport> transport) { transport_ = std::move(transport); }

  int size() const { return size_; }
  int rank() const { return rank_; }
  int world_rank(int peer) const { return world_ranks_[static_cast<std::size_t>(peer)]; }
  MPI_Comm comm() const { return comm_.get(); }
  bool queued() const { return transport_ != nullptr; }
  /// Seconds that a call took which began at `start_ns`; 0 where only the device knows.
  double seconds_since(std::int64_t start_ns) const {
    return queued() ? 0 : mindpipe::seconds_since(start_ns);
  }
  /// Route by which tensors of this memory travel.
  Route route(const Memory& memory) const;
  Waiting& waiting() const { return waiting_; }
  /// A number for the next exchange, equal on all ranks because they begin their exchanges in one order.
  int next_exchange() { return static_cast<int>(next_exchange_++ % exchanges_under_way); }

 private:
  MpiComm comm_;
  Waiting& waiting_;
  std::unique_ptr<Transport> transport_;  ///< none: MPI carries everything
  int size_ = 1, rank_ = 0;
  std::vector<int> world_ranks_;
  unsigned next_exchange_ = 0;
  static constexpr unsigned exchanges_under_way = 8192;  ///< far more than there ever are; keeps tags small
};

/// Names the ranks of the job that keep a wait from ending: "nothing from rank 2 yet; ranks 3 and 5 have not
/// taken what is sent to them".
std::string missing_text(std::vector<int> senders, std::vector<int> receivers);

/// Route by which bytes of this memory get to another rank with MPI.
Route route_of(const Memory& memory, const Waiting& waiting);

/// Messages under way, begun together and awaited together. Nothing here blocks. Messages between two ranks
/// of a group that have the same tag arrive in the order in which they were begun. On the queued route the
/// first call of done() puts them all in.
class Messages {
 public:
  explicit Messages(Group& group, const Route& route = {}) : group_(&group), route_(route) {}
  void send(void* data, std::size_t bytes, int peer, int tag);
  void receive(void* data, std::size_t bytes, int peer, int tag);
  /// Moves all messages on; true once all are done, and then new ones may be begun.
  bool done();
  std::size_t bytes_sent() const { return bytes_sent_; }
  /// When all that was done had passed the ports, or might have begun; what is begun next begins then.
  std::int64_t ended() const { return route_.moment; }
  /// Names the ranks whose messages have not arrived, and those that have not taken one.
  std::string missing() const;

 private:
  void begin(Wire::Way way, void* data, std::size_t bytes, int peer, int tag);

  Group* group_;
  Route route_;
  struct Part {
    Wire wire;
    bool first;  ///< whether a message begins with this part
  };
  std::vector<Part> parts_;
  Inquiry inquiry_;
  std::vector<Transport::Parcel> parcels_;  ///< messages of the queued route that are not put in yet
  std::size_t bytes_sent_ = 0;
};

}  // namespace mindpipe
