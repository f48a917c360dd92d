#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/mpi.h"
#include "comm/paper_ports.h"
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
  /// Where counted bytes pass ports: none, or those of this rank, with the link, the class, and when what is
  /// begun may begin.
  PaperPorts* ports = nullptr;
  Link link = {};
  TrafficClass traffic = TrafficClass::pipeline;
  std::int64_t moment = 0;
  std::optional<std::int64_t> price = {};  ///< time of the out port, whatever the bytes
};

/// One message on its way between two ranks of an MPI communicator, by any route but the queued one. Nothing
/// blocks.
///
/// Where counted bytes pass ports, the receiver's word goes ahead: both ends are there, and the message
/// stands ready at its rank's out port. As it begins to leave, a notice goes to the receiver with the time at
/// which it has left, whose in port says when it has arrived. Of a move the sender hears that, too: a rank's
/// moves follow each other.
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

  /// Moves the message on as far as possible after what the last inquiry saw; true once the bytes are where
  /// they should be and the memory is free again.
  bool done();
  /// Whether MPI has the message: from then on a message to the same peer under the same tag cannot overtake
  /// it.
  bool handed_over() const {
    return stage_ != Stage::copying_out && stage_ != Stage::awaits_word && stage_ != Stage::at_port;
  }
  /// Whether the message is still not done, as far as MPI knows now.
  bool pending() const;
  bool sends() const { return way_ != Way::receive; }
  int peer() const { return peer_; }
  std::size_t bytes() const { return bytes_; }
  /// Bytes that have arrived, once a receive is done.
  std::size_t received() const { return received_; }
  /// When a message that is done had passed the ports, in their time; 0 where there are none.
  std::int64_t ended() const { return paper_ ? paper_->ended : 0; }

 private:
  friend class Inquiry;
  enum class Stage : std::uint8_t { copying_out, awaits_word, at_port, with_mpi, passes, copying_in, over };
  /// What passes ports instead of bytes.
  struct OnPaper {
    /// What the sender says of a message.
    struct Notice {
      std::int64_t began = 0, left = 0, latency = 0, traffic = 0, level = 0;
    };
    std::int64_t word = 0;  ///< the moment from which the receiver is there; then when a move has arrived
    MPI_Request word_request = MPI_REQUEST_NULL;
    Notice notice = {};
    PaperPorts::Number number = -1;
    std::int64_t ended = 0;
    bool knows_end = false;
    /// When the message has left, or arrived.
    void end_at(std::int64_t time);
    /// Whether MPI has what was said beside the message.
    bool has_said();
    OnPaper() = default;
    OnPaper(const OnPaper&) = delete;
    OnPaper& operator=(const OnPaper&) = delete;
    ~OnPaper();
  };
  void hand_over();
  void meet();
  void hear_of_port();
  void take_word();
  void take_notice();
  void take_arrival(std::int64_t time);
  void* place() const { return route_.kind == Route::Kind::staged ? block_ : data_; }
  void arrive(MPI_Status& status);
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
  std::unique_ptr<OnPaper> paper_;  ///< none where no ports are
};

/// Question to MPI how far many messages are. One question is for all of them, since each makes MPI look at
/// all its connections, and where ranks outnumber processors it may give the processor away.
class Inquiry {
 public:
  /// Has the next question ask about the message too, which stays where it is until then.
  void about(Wire& wire);
  /// Asks MPI. `done` of each message then knows.
  void ask();

 private:
  std::vector<Wire*> wires_;
  std::vector<MPI_Request> requests_;
  std::vector<int> ended_;  ///< numbers of the requests that are done
  std::vector<MPI_Status> statuses_;
};

}  // namespace mindpipe
