#include "comm/nccl_transport.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>

#include "comm/device_transports.h"
#include "comm/mpi.h"

namespace mindpipe {

class NcclTransports::Link final : public Transport {
 public:
  Link(NcclTransports& all, const std::string& name) : name_(name), all_(all) {}
  ~Link() override {
    {
      const std::lock_guard lock(all_.mutex_);
      std::erase(all_.alive_, this);
    }
    if (handle_ == nullptr) return;
    ncclResult_t state = ncclSuccess;
    // What was put in has run, or never will: the device was waited for, or something broke.
    if (all_.library_.state(handle_, &state) == ncclSuccess && state == ncclSuccess)
      all_.library_.destroy(handle_);
    else all_.library_.abort(handle_);
  }
  void put(std::span<const Parcel> parcels) override {
    const auto stream = static_cast<cudaStream_t>(all_.backend_.native_queue());
    const Nccl& nccl = all_.library_;
    nccl.require(nccl.group_start(), "ncclGroupStart", name_);
    for (const Parcel& p : parcels)
      if (p.way == Parcel::Way::send)
        nccl.require(nccl.send(p.data, p.bytes, ncclUint8, p.peer, handle_, stream), "ncclSend", name_);
      else nccl.require(nccl.receive(p.data, p.bytes, ncclUint8, p.peer, handle_, stream), "ncclRecv", name_);
    all_.settle(*this, nccl.group_end(), "ncclGroupEnd");
  }

  const std::string name_;
  ncclComm_t handle_ = nullptr;

 private:
  NcclTransports& all_;
};

NcclTransports::NcclTransports(Backend& backend, Waiting& waiting, int reserved)
    : backend_(backend), waiting_(waiting), reserved_(reserved) {
  // NCCL reads it at the first communicator; without it several of them deadlock.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
}

NcclTransports::~NcclTransports() = default;

void NcclTransports::settle(const Link& link, ncclResult_t result, const char* call) {
  library_.require(result, call, link.name_);
  if (result != ncclInProgress) return;
  ncclResult_t state = ncclInProgress;
  waiting_.until(
      [&] {
        library_.require(library_.state(link.handle_, &state), "ncclCommGetAsyncError", link.name_);
        library_.require(state, call, link.name_);
        return state != ncclInProgress;
      },
      [&] { return fmt::format("{} of {}", call, link.name_); });
}

std::unique_ptr<Transport> NcclTransports::among(MPI_Comm ranks, Use use, const std::string& name,
                                                 std::span<const int> peers) {
  int rank = 0, size = 0;
  MPI_CHECK(MPI_Comm_rank(ranks, &rank));
  MPI_CHECK(MPI_Comm_size(ranks, &size));
  auto link = std::make_unique<Link>(*this, name);
  ncclUniqueId id{};
  if (rank == 0) library_.require(library_.unique_id(&id), "ncclGetUniqueId", name);
  MPI_CHECK(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, ranks));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = link->name_.c_str();
  // NCCL runs a block of threads on each multiprocessor that it takes.
  if (const int most = most_multiprocessors(use, reserved_); most > 0) config.maxCTAs = most;
  waiting_.blocked([&] { return fmt::format("the ranks of {}", name); },
                   [&] {
                     settle(*link, library_.initialize(&link->handle_, size, id, rank, &config),
                            "ncclCommInitRankConfig");
                     connect(*link, use, rank, size, peers);
                   });
  const std::lock_guard lock(mutex_);
  alive_.push_back(link.get());
  return link;
}

/// Sends a first message between all ranks that will exchange some: it makes their connections, for which
/// both hosts wait, and should do so here and not in a step.
void NcclTransports::connect(Link& link, Use use, int rank, int size, std::span<const int> peers) {
  Arena bytes(backend_.memory(), MemoryClass::workspace, 2 * static_cast<std::size_t>(size) * alignment);
  std::vector<Transport::Parcel> parcels;
  for (int peer = 0; peer < size; ++peer) {
    const bool is_one = peers.empty() || std::find(peers.begin(), peers.end(), peer) != peers.end();
    if (peer == rank || !is_one) continue;
    const auto at = [&](int place) { return bytes.address_of(static_cast<std::size_t>(place) * alignment); };
    if (use != Use::channel || rank == 0)
      parcels.push_back({Transport::Parcel::Way::send, at(peer), 1, peer});
    if (use != Use::channel || rank == 1)
      parcels.push_back({Transport::Parcel::Way::receive, at(size + peer), 1, peer});
  }
  link.put(parcels);
  backend_.synchronize();
}

std::string NcclTransports::trouble() {
  const std::lock_guard lock(mutex_);
  for (const Link* link : alive_) {
    ncclResult_t state = ncclSuccess;
    if (library_.state(link->handle_, &state) != ncclSuccess || state == ncclSuccess ||
        state == ncclInProgress)
      continue;
    return library_.sentence(state, "what goes on in the background", link->name_);
  }
  return "";
}

std::string bus_place_of_gpu() {
  int device = 0;
  char place[64] = "";
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetPCIBusId(place, sizeof place, device) != cudaSuccess) {
    cudaGetLastError();  // asking is no failure of a later call
    return "";
  }
  return place;
}

std::unique_ptr<Transports> make_nccl_transports(Backend& backend, Waiting& waiting, int reserved) {
  return std::make_unique<NcclTransports>(backend, waiting, reserved);
}

}  // namespace mindpipe
