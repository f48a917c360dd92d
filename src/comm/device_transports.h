#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/mpi.h"
#include "comm/transport.h"
#include "config/kinds.h"

namespace mindpipe {

class Waiting;

/// Whether a job's devices carry their messages themselves, by NCCL, or MPI does, and in words why.
struct DeviceTransports {
  std::unique_ptr<Transports> transports;  ///< none: MPI does
  std::string why;                         ///< "NCCL 2.28.9 between 8 GPUs"
};
/// Refuses, with the reason, NCCL where it is asked for and cannot be. Collective over the job's ranks.
DeviceTransports device_transports(const World& world, Backend& backend, Waiting& waiting,
                                   TransportKind wish);

/// What one rank of a job has to offer.
struct Seat {
  std::string host, gpu;  ///< the GPU that it computes on, by its place on the bus; empty: none
  int version = 0;        ///< of NCCL there; 0: it cannot be opened
};
/// Why NCCL cannot carry the messages of these ranks; empty: it can.
std::string obstacle(std::span<const Seat> seats);

/// NCCL's number for its version, 22809 for 2.28.9: what this program was built with (0: without it), and
/// what can be opened here (0: none).
int nccl_built_with();
int nccl_found();
/// "2.28.9"
std::string nccl_version_text(int version);
/// The place on the bus of the GPU that this thread computes on.
std::string bus_place_of_gpu();
/// Transports by NCCL over the backend's GPU.
std::unique_ptr<Transports> make_nccl_transports(Backend& backend, Waiting& waiting);

}  // namespace mindpipe
