#pragma once
#include "arithmetic.h"
#include "core/clock.h"
#include "device.h"

namespace mindpipe {

/// Everything a layer may ask of the hardware: the one seam between what trains and what computes.
class Backend : public Arithmetic, public Device {};

/// A backend whose operations are done when they return, so that queues and events have nothing to remember.
class ImmediateBackend : public Backend {
 public:
  void use_queue(Queue) override {}
  std::uint64_t record(Queue) override { return 0; }
  void wait(Queue, std::uint64_t) override {}
  bool finished(std::uint64_t) override { return true; }
  std::uint64_t mark(Queue) override { return static_cast<std::uint64_t>(now_ns()); }
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override {
    return static_cast<std::int64_t>(then - first);
  }
  void keep_marks(std::size_t) override {}
};

}  // namespace mindpipe
