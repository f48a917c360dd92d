#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "late_backend.h"
#include "make_backend.h"
#include "ordered_transport.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Puts a backend of a test's own over the one that a configuration asks for.
using Cover = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;
/// Makes what carries the messages of a device that runs behind its host.
using Carry = std::function<std::unique_ptr<Transports>(LateBackend&, const World&, Waiting&)>;

/// Transports on paper that keep, and enforce, the one order that NCCL needs.
inline std::unique_ptr<Transports> carried_in_order(LateBackend& device, const World& ranks, Waiting&) {
  return std::make_unique<OrderedTransports>(device, ranks.comm);
}

/// The real transports by NCCL, for programs that are linked with a library that stands in for it.
inline std::unique_ptr<Transports> carried_by_nccl(LateBackend& device, const World&, Waiting& waiting) {
  return make_nccl_transports(device, waiting);
}

/// A worker's device that runs behind its host and whose memory neither host nor MPI may read: a GPU that
/// ranks share, or, where it carries its messages itself, a GPU of its own.
struct LateDevice {
  LateBackend* device = nullptr;
  MakeBackend make;
  MakeTransports connect = make_transports;

  explicit LateDevice(const Carry& carry = {}, const Cover& cover = {}) {
    make = [this, cover](const Config& config, Memory& memory, int threads, const World& ranks) {
      std::unique_ptr<Backend> below = make_backend(config, memory, threads, ranks);
      if (cover) below = cover(std::move(below));
      auto late = std::make_unique<LateBackend>(std::move(below), ranks.rank);
      device = late.get();
      return late;
    };
    if (!carry) return;
    connect = [this, carry](const Config&, const World& ranks, Backend&, Waiting& waiting) {
      return ranks.size == 1 ? DeviceTransports{}
                             : DeviceTransports{carry(*device, ranks, waiting), "on paper"};
    };
  }
  LateDevice(const LateDevice&) = delete;
  /// Lets the device go on while its host waits, and the host hand over what the device has copied out for
  /// others: they may wait for it, and this host for them.
  void go_on_in_waits(Worker& worker) {
    worker.waiting().on_progress([this, &worker] {
      device->look();
      worker.executor().look_around();
    });
  }
};

}  // namespace mindpipe
