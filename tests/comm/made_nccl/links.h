#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_stream.h"

/// Messages between processes, in memory that they share.
namespace made_nccl {

/// What goes from one rank to another. Both ends write down the sizes that they mean; bytes pass in chunks.
struct Lane {
  static constexpr std::uint64_t most_in_group = 256;
  static constexpr std::size_t chunk_bytes = 16 << 10;
  struct End {
    std::atomic<std::uint64_t> put, sizes[most_in_group], types[most_in_group];
  };
  End sender, receiver;
  std::atomic<std::uint64_t> filled, emptied;  ///< chunks
  std::byte chunk[chunk_bytes];
};

/// What the ranks of a communicator share. Memory of zeros is one that nobody has joined.
struct Room {
  std::atomic<std::uint32_t> ranks, here, leaving;
  std::atomic<std::uint64_t> taken;  ///< a bit for each rank that is here
  Lane& lane(int from, int to) {
    return reinterpret_cast<Lane*>(
        this + 1)[static_cast<std::uint32_t>(from) * ranks + static_cast<std::uint32_t>(to)];
  }
  static std::size_t bytes(int ranks) {
    return sizeof(Room) + static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * sizeof(Lane);
  }
};

/// Memory that processes find by a name. Whoever has mapped it keeps it, also when its name is gone.
class SharedRoom {
 public:
  /// Throws where nobody has made `name`, or its name is gone.
  SharedRoom(const std::string& name, int ranks);
  ~SharedRoom();
  SharedRoom(const SharedRoom&) = delete;
  Room* operator->() const { return room_; }
  static void make(const std::string& name);
  static void forget(const std::string& name);

 private:
  Room* room_ = nullptr;
  std::size_t bytes_;
};

/// Waits of a host or of a stream: seconds pass from the first look.
class Patience {
 public:
  static inline double seconds = 60;
  void look(const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    if (!since_) since_ = std::make_unique<std::chrono::steady_clock::time_point>(now);
    if (std::chrono::duration<double>(now - *since_).count() > seconds)
      throw std::runtime_error("nccl, standing in: " + what + " waits for a rank that does not come");
  }

 private:
  std::unique_ptr<std::chrono::steady_clock::time_point> since_;
};

struct Message {
  bool sends = false;
  std::byte* data = nullptr;
  std::uint64_t bytes = 0, type = 0;
  int peer = 0;
};

/// What all communicators of a device keep together: the order in which their messages start.
struct Device {
  std::uint64_t put_in = 0, started = 0;
  int alive = 0;
  bool keeps_order = false, connections_are_closed = false;
};

/// One rank's end of a communicator.
struct Link {
  Link(const std::string& id, int ranks, int rank, std::string name)
      : room(id, ranks),
        ranks(ranks),
        rank(rank),
        name(std::move(name)),
        connected(static_cast<std::size_t>(2 * ranks)) {}
  SharedRoom room;
  const int ranks, rank;
  const std::string name;
  std::atomic<int> state{0};    ///< an ncclResult_t; the watchdog's thread asks for it
  std::vector<bool> connected;  ///< for each peer, ways to it and then ways from it
  bool busy = false;            ///< one operation at a time, in whatever streams they are
  int waiting = 0;              ///< operations that have been put in and are not over
};

/// Messages that travel together, once all that were put in before them on this device have started, on both
/// sides, and the stream has come to them.
class Operation {
 public:
  Operation(Device& device, std::shared_ptr<Link> link, std::vector<Message> messages);
  /// True once all have arrived and left.
  bool turn();

 private:
  enum class Stage { queued, meeting, started };
  struct Way {
    Message message;
    std::uint64_t number = 0, moved = 0;
    bool is_over = false;
  };
  void post();
  bool all_have_met();
  void start();
  bool move();
  bool move(Way& way) const;
  Lane& lane(const Message& m) const {
    return m.sends ? link_->room->lane(link_->rank, m.peer) : link_->room->lane(m.peer, link_->rank);
  }

  Device& device_;
  std::shared_ptr<Link> link_;
  std::vector<Way> ways_;
  std::uint64_t place_;
  int delay_;  ///< turns between start and first byte, so that whoever writes there meanwhile is found out
  Stage stage_ = Stage::queued;
  Patience patience_;
};

}  // namespace made_nccl
