#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mindpipe {

/// Carries messages between the ranks of a group in a device's queues. Messages are put into the backend's
/// current queue, as operations are, and travel when their turn comes there; the host waits for none of them.
///
/// There are no tags. What one rank puts for another arrives in the order of putting, so both ends list the
/// same sizes.
/// Over all transports of a rank a message may start only when those that were put before it have started:
/// all ranks put them in along one common order (the tickets of a program, and inside a pass the order of
/// its layers), or the job stands still.
class Transport {
 public:
  struct Parcel {
    enum class Way : std::uint8_t { send, receive };
    Way way = Way::send;
    void* data = nullptr;
    std::size_t bytes = 0;  ///< more than none
    int peer = 0;           ///< a rank of the group
  };

  virtual ~Transport() = default;
  /// Puts messages in that travel together: none waits for another, but those between the same two ranks in
  /// one direction stay in order.
  virtual void put(std::span<const Parcel> parcels) = 0;
};

/// Makes a rank's transports, before the first step. There is one object for each rank.
class Transports {
 public:
  enum class Use : std::uint8_t {
    sums,     ///< messages of any size, which somebody waits for: they may take all of the link
    bulk,     ///< messages of any size beside computing: they leave most of the device to that
    scalars,  ///< messages of a few bytes
    channel,  ///< messages from rank 0 of two to rank 1, beside computing: they take little of the device
  };
  virtual ~Transports() = default;
  /// Makes a transport among `ranks`, a communicator that is not needed afterwards; `name` is for sentences.
  /// `peers`: the ranks of it with which this one will exchange messages, who name it too; none: all of them.
  /// Collective over `ranks`; all ranks make their transports in one common order.
  virtual std::unique_ptr<Transport> among(MPI_Comm ranks, Use use, const std::string& name,
                                           std::span<const int> peers = {}) = 0;
  /// Sentence that says what has gone wrong in the background; empty: nothing. The watchdog asks at any time,
  /// from a thread of its own.
  virtual std::string trouble() { return ""; }
};

}  // namespace mindpipe
