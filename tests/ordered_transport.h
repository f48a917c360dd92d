#pragma once
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "board.h"
#include "comm/mpi.h"
#include "comm/transport.h"
#include "late_backend.h"

// Transports between devices on paper that keep the rule of those between GPUs, and say so where ranks break
// it: messages of one rank start in the order in which they were put in, and a message starts only when all
// that were put in before it, on either of its ranks, have started.
namespace mindpipe {

/// Handshake: what one rank says to another before their messages may travel.
struct Handshake {
  int number = 0;  ///< how often these two have met on this transport
  char sends[120] = "", receives[120] = "";
};

class OrderedTransports final : public Transports {
 public:
  /// Makes the transports of a device. Collective over `ranks`, the whole job.
  OrderedTransports(LateBackend& device, MPI_Comm ranks) : device_(device), board_(ranks) {
    MPI_Comm_rank(ranks, &rank_);
    lots_.sample = static_cast<std::uint32_t>(rank_);
  }
  std::unique_ptr<Transport> among(MPI_Comm ranks, Use, const std::string& name,
                                   std::span<const int> peers = {}) override {
    ++made_;
    return std::make_unique<Ordered>(*this, ranks, name, peers);
  }
  /// How many transports there are.
  int made() const { return made_; }
  int messages_started() const { return static_cast<int>(started_); }

 private:
  class Ordered;

  /// The messages that one call has put in.
  class Operation {
   public:
    Operation(OrderedTransports& all, Ordered& transport, std::span<const Transport::Parcel> parcels)
        : all_(all),
          transport_(transport),
          parcels_(parcels.begin(), parcels.end()),
          place_(all.put_in_++),
          delay_(all.lot(4)) {}
    /// Gives up an operation that is not done: nothing may arrive any more where its memory was.
    ~Operation() {
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] == MPI_REQUEST_NULL) continue;
        const bool receives =
            stage_ == Stage::greeting ? i % 2 == 0 : parcels_[i].way == Transport::Parcel::Way::receive;
        if (receives) {
          MPI_Cancel(&requests_[i]);
          MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
        } else {
          MPI_Request_free(&requests_[i]);
        }
      }
    }
    Operation(const Operation&) = delete;

    /// True once all its messages have arrived and left.
    bool turn() {
      if (stage_ == Stage::queued && all_.started_ == place_ && !transport_.busy_) greet();
      if (stage_ == Stage::greeting && all_have_answered()) start();
      if (stage_ == Stage::started && delay_-- <= 0) move();
      if (stage_ != Stage::moving || !all_over()) return false;
      transport_.busy_ = false;
      return true;
    }

   private:
    enum class Stage { queued, greeting, started, moving };
    void greet();
    bool all_have_answered();
    void start();
    void move();
    bool all_over() {
      int over = 0;
      MPI_CHECK(
          MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &over, MPI_STATUSES_IGNORE));
      return over != 0;
    }

    OrderedTransports& all_;
    Ordered& transport_;
    std::vector<Transport::Parcel> parcels_;
    std::uint64_t place_;
    int delay_;  ///< turns between its start and the first byte: whoever writes over it meanwhile is found
                 ///< out
    Stage stage_ = Stage::queued;
    std::vector<int> peers_;
    std::vector<Handshake> mine_, theirs_;
    std::vector<MPI_Request> requests_;
  };

  class Ordered final : public Transport {
   public:
    Ordered(OrderedTransports& all, MPI_Comm ranks, const std::string& name, std::span<const int> peers)
        : all_(all), name_(name), peers_(peers.begin(), peers.end()) {
      MPI_CHECK(MPI_Comm_dup(ranks, greetings_.receive()));
      MPI_CHECK(MPI_Comm_dup(ranks, messages_.receive()));
      world_ = world_ranks(ranks);
    }
    void put(std::span<const Parcel> parcels) override {
      for (const Parcel& parcel : parcels)
        MP_CHECK(peers_.empty() || std::find(peers_.begin(), peers_.end(), parcel.peer) != peers_.end(),
                 "{} has no connection to its rank {}", name_, parcel.peer);
      auto operation = std::make_shared<Operation>(all_, *this, parcels);
      all_.device_.put([operation] { return operation->turn(); });
    }

   private:
    friend class Operation;
    OrderedTransports& all_;
    std::string name_;
    std::vector<int> peers_;
    MpiComm greetings_, messages_;
    std::vector<int> world_;
    std::map<int, int> met_;  ///< meetings with each peer
    bool busy_ = false;       ///< one operation at a time, in whatever queues they are
  };

  int lot(int below) { return static_cast<int>(lots_.uniform(draws_++) * below); }

  LateBackend& device_;
  Board board_;
  int rank_ = 0, made_ = 0;
  std::uint64_t put_in_ = 0, started_ = 0, draws_ = 0;
  RandomStream lots_{.seed = 5, .purpose = purpose_of("delays")};
};

inline void OrderedTransports::Operation::greet() {
  for (const Transport::Parcel& parcel : parcels_)
    if (std::find(peers_.begin(), peers_.end(), parcel.peer) == peers_.end()) peers_.push_back(parcel.peer);
  mine_.resize(peers_.size());
  theirs_.resize(peers_.size());
  requests_.assign(2 * peers_.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    std::string sends, receives;
    for (const Transport::Parcel& parcel : parcels_)
      if (parcel.peer == peers_[i])
        (parcel.way == Transport::Parcel::Way::send ? sends : receives) += fmt::format(" {}", parcel.bytes);
    mine_[i].number = transport_.met_[peers_[i]]++;
    MP_CHECK(sends.size() < sizeof mine_[i].sends && receives.size() < sizeof mine_[i].receives,
             "too many messages for one handshake");
    sends.copy(mine_[i].sends, sends.size());
    receives.copy(mine_[i].receives, receives.size());
    const MPI_Comm comm = transport_.greetings_.get();
    MPI_CHECK(MPI_Irecv(&theirs_[i], sizeof(Handshake), MPI_BYTE, peers_[i], 0, comm, &requests_[2 * i]));
    MPI_CHECK(MPI_Isend(&mine_[i], sizeof(Handshake), MPI_BYTE, peers_[i], 0, comm, &requests_[2 * i + 1]));
  }
  transport_.busy_ = true;
  stage_ = Stage::greeting;
}

inline bool OrderedTransports::Operation::all_have_answered() {
  if (all_over()) return true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    int answered = 1;
    if (requests_[2 * i] != MPI_REQUEST_NULL)
      MPI_CHECK(MPI_Request_get_status(requests_[2 * i], &answered, MPI_STATUS_IGNORE));
    if (answered == 0) {
      all_.board_.wait_for(transport_.world_[static_cast<std::size_t>(peers_[i])], transport_.name_,
                           mine_[i].number, place_);
      break;
    }
  }
  return false;
}

inline void OrderedTransports::Operation::start() {
  all_.board_.go_on();
  for (std::size_t i = 0; i < peers_.size(); ++i)
    MP_CHECK(
        mine_[i].number == theirs_[i].number && std::strcmp(mine_[i].sends, theirs_[i].receives) == 0 &&
            std::strcmp(mine_[i].receives, theirs_[i].sends) == 0,
        "{}, number {}: rank {} sends messages of{} bytes and receives{}, but rank {} sends{} and receives{}",
        transport_.name_, mine_[i].number, all_.rank_, mine_[i].sends, mine_[i].receives,
        transport_.world_[static_cast<std::size_t>(peers_[i])], theirs_[i].sends, theirs_[i].receives);
  ++all_.started_;
  // From its start until its end nobody may rely on what stands where a message arrives.
  for (const Transport::Parcel& parcel : parcels_)
    if (parcel.way == Transport::Parcel::Way::receive) std::memset(parcel.data, 0xff, parcel.bytes);
  stage_ = Stage::started;
}

inline void OrderedTransports::Operation::move() {
  requests_.assign(parcels_.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < parcels_.size(); ++i) {
    const Transport::Parcel& p = parcels_[i];
    const int bytes = static_cast<int>(p.bytes);
    if (p.way == Transport::Parcel::Way::send)
      MPI_CHECK(MPI_Isend(p.data, bytes, MPI_BYTE, p.peer, 0, transport_.messages_.get(), &requests_[i]));
    else MPI_CHECK(MPI_Irecv(p.data, bytes, MPI_BYTE, p.peer, 0, transport_.messages_.get(), &requests_[i]));
  }
  stage_ = Stage::moving;
}

}  // namespace mindpipe
