#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/mpi.h"
#include "comm/transport.h"
#include "config/sections/device.h"

namespace mindpipe {

class Waiting;

/// Who carries the messages of a job's devices, the devices themselves by NCCL or MPI, and in words why.
struct DeviceTransports {
  std::unique_ptr<Transports> transports;  ///< none: MPI carries them
  std::string why;                         ///< "NCCL 2.28.9 between 8 GPUs"
};
/// Chooses who carries messages; NCCL that is asked for and cannot be is refused with the reason. Collective
/// over the job's ranks.
DeviceTransports device_transports(const World& world, Backend& backend, Waiting& waiting,
                                   const DeviceConfig& wish);
/// How many multiprocessors at most a transport of NCCL's takes, `reserved` of which products leave alone; 0:
/// as many as NCCL wants.
int most_multiprocessors(Transports::Use use, int reserved);

/// The words for messages that MPI carries because of `why`, and for what `reserved` multiprocessors are
/// then good for.
std::string messages_by_mpi(const std::string& why, int reserved);

/// Host, GPU and NCCL of one rank of a job.
struct Seat {
  std::string host, gpu;  ///< the GPU that it computes on, by its place on the bus; empty: none
  int version = 0;        ///< NCCL's version there; 0: it cannot be opened
};
/// The reason why NCCL cannot carry the messages of these ranks; empty: it can.
std::string obstacle(std::span<const Seat> seats);

/// Version of NCCL that this program was built with, as NCCL's number (22809 for 2.28.9); 0: without it.
int nccl_built_with();
/// Version of NCCL that can be opened here, as NCCL's number; 0: none.
int nccl_found();
/// Text of NCCL's number for a version: "2.28.9" for 22809.
std::string nccl_version_text(int version);
/// The place on the bus of the GPU that this thread computes on.
std::string bus_place_of_gpu();
/// Transports by NCCL over the backend's GPU, `reserved` of whose multiprocessors products leave alone.
std::unique_ptr<Transports> make_nccl_transports(Backend& backend, Waiting& waiting, int reserved = 0);

}  // namespace mindpipe
