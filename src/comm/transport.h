#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mindpipe {

/// Messages between the ranks of a group that a device's queues carry: they are put into the backend's
/// current queue, as its operations are, travel when their turn comes there, and the host waits for none of
/// them.
///
/// There are no tags. What one rank puts for another arrives in that order, so both ends list the same sizes.
/// Over all transports of a rank a message may start only when those that were put before it have started:
/// all ranks put theirs in along one common order (the tickets of a program, and inside a pass the order of
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
  /// These travel together: none waits for another, but what goes between the same two ranks in one direction
  /// stays in order.
  virtual void put(std::span<const Parcel> parcels) = 0;
};

/// Where a rank gets its transports from, before the first step. One for each rank.
class Transports {
 public:
  enum class Use : std::uint8_t {
    sums,     ///< messages of any size, which may take all of the link
    scalars,  ///< a few bytes
    channel,  ///< from rank 0 of two to rank 1: runs beside computing and takes little of the device
  };
  virtual ~Transports() = default;
  /// Collective over `ranks`, which are needed no longer afterwards; all ranks make theirs in one common
  /// order. `name`: for sentences.
  virtual std::unique_ptr<Transport> among(MPI_Comm ranks, Use use, const std::string& name) = 0;
  /// What has gone wrong in the background, in a sentence; empty: nothing. The watchdog asks, from its own
  /// thread, at any time.
  virtual std::string trouble() { return ""; }
};

}  // namespace mindpipe
