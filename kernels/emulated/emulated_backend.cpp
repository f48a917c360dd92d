#include "emulated/emulated_backend.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "core/clock.h"
#include "core/random.h"

namespace mindpipe {
namespace {

constexpr std::int64_t ahead_ns =
    1'000'000;                              // the host may be this far ahead of the device, as of a real one
constexpr std::int64_t pause_ns = 100'000;  // between two operations: the device stood idle
constexpr std::int64_t most_late_ns = 2'000'000;

/// One step of splitmix64.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

EmulatedBackend::EmulatedBackend(Memory& memory, DeviceDescription device, Pace pace,
                                 std::int64_t longest_sleep_ns)
    : memory_(memory), device_(std::move(device)), pace_(pace), longest_sleep_ns_(longest_sleep_ns) {
  MP_CHECK(memory.kind() == Memory::Kind::counted, "an emulated device counts its memory");
}

void EmulatedBackend::spend(std::string_view name, double flops, double bytes, DType dtype, double slower,
                            double beside) {
  for (const std::uint64_t part : {purpose_of(name), std::bit_cast<std::uint64_t>(flops),
                                   std::bit_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(dtype)})
    work_ = mixed(work_ ^ part);
  const double rate = dtype == DType::bf16 ? device_.flops_bf16 : device_.flops_f32;
  const double cost = device_.launch + std::max(slower * flops / rate, (bytes + beside) / device_.bytes);
  seconds_ += cost;
  flops_ += flops;
  if (pace_ == Pace::wait) {
    // One that was awoken late shortens the next: operations run on one clock, anew after a pause.
    const std::int64_t now = now_ns();
    if (now - left_at_ns_ > pause_ns || free_at_ns_ < now - most_late_ns)
      free_at_ns_ = std::max(free_at_ns_, now);
    free_at_ns_ += static_cast<std::int64_t>(cost * 1e9);
    if (free_at_ns_ - now > ahead_ns) wait_until(free_at_ns_ - ahead_ns / 2);
  }
  progress();
  left_at_ns_ = now_ns();
}

void EmulatedBackend::tell_of(const ProductCall& call) {
  using Kind = ProductCall::Kind;
  if (workspace_ != nullptr) {
    if (call.kind == Kind::forward) workspace_->product(call.operands, call.n, call.m, call.k);
    if (call.kind == Kind::backward_input) workspace_->product(call.operands, call.n, call.k, call.m);
    if (call.kind == Kind::backward_weight) workspace_->product(call.operands, call.m, call.k, call.n);
  }
  if (observe_) observe_(call);
}

/// Sleeps towards the end and meets it awake: a sleeper may be awoken 60 us late.
void EmulatedBackend::wait_until(std::int64_t end_ns) {
  while (now_ns() < end_ns) {
    progress();
    const std::int64_t left = end_ns - now_ns();
    if (left > 100'000)
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left - 60'000, longest_sleep_ns_)));
    else std::this_thread::yield();
  }
}

void EmulatedBackend::copy(const Tensor& from, const Tensor&) {
  spend("copy", 0, 2.0 * static_cast<double>(from.bytes()), from.dtype);
}
void EmulatedBackend::download(const Tensor& from, void* host) {
  std::fill_n(static_cast<std::byte*>(host), from.bytes(), std::byte{0});
}
void EmulatedBackend::synchronize() {
  if (pace_ == Pace::wait) wait_until(free_at_ns_);
  left_at_ns_ = now_ns();
}

std::unique_ptr<Backend> make_emulated_backend(Memory& memory, const DeviceDescription& device,
                                               std::int64_t longest_sleep_ns) {
  return std::make_unique<EmulatedBackend>(memory, device, EmulatedBackend::Pace::wait, longest_sleep_ns);
}

std::unique_ptr<PricingBackend> make_pricing_backend(Memory& memory, const DeviceDescription& device) {
  return std::make_unique<EmulatedBackend>(memory, device, EmulatedBackend::Pace::count);
}

}  // namespace mindpipe
