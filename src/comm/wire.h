#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/mpi.h"
#include "comm/staging.h"
#include "comm/transport.h"

namespace mindpipe {

/// Route by which the bytes of tensors get to another rank.
struct Route {
  enum class Kind : std::uint8_t {
    memory,   ///< MPI reads and writes the bytes where they are
    counted,  ///< no bytes travel: addresses are counted and never followed, messages are real, but empty
    staged,   ///< the bytes pass through pinned memory of the host
    queued,   ///< the device carries them in its current queue; once put in, a message is done for the host
  };
  Kind kind = Kind::memory;
  Staging* staging = nullptr;
  Transport* transport = nullptr;
};

/// One message on its way between two ranks of an MPI communicator, by any route but the queued one. Nothing
/// blocks.
class Wire {
 public:
  enum class Way : std::uint8_t {
    send,
    send_when_met,  ///< a send that ends when its receiver is there
    receive,
  };
  Wire(const Route& route, Way way, void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm);
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&&) = delete;
  ~Wire();

  /// Moves the message on as far as possible; true once the bytes are where they should be and the memory is
  /// free again.
  bool done();
  /// Whether MPI has the message: from then on a message to the same peer under the same tag cannot overtake
  /// it.
  bool handed_over() const { return stage_ != Stage::copying_out; }
  /// Whether the message is still not done, as far as MPI knows now.
  bool pending() const;
  bool sends() const { return way_ != Way::receive; }
  int peer() const { return peer_; }
  std::size_t bytes() const { return bytes_; }
  /// Bytes that have arrived, once a receive is done.
  std::size_t received() const { return received_; }

 private:
  enum class Stage : std::uint8_t { copying_out, with_mpi, copying_in, over };
  void hand_over();
  void* place() const { return route_.kind == Route::Kind::staged ? block_ : data_; }
  void arrive();
  void end();

  Route route_;
  Way way_;
  Stage stage_ = Stage::with_mpi;
  void *data_, *block_ = nullptr;
  std::size_t bytes_, received_ = 0;
  int peer_, tag_;
  MPI_Comm comm_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::uint64_t event_ = 0;
};

}  // namespace mindpipe
