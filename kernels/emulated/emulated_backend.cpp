#include "emulated/emulated_backend.h"

#include <algorithm>
#include <bit>

#include "core/random.h"

namespace mindpipe {
namespace {

/// One step of splitmix64.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

EmulatedBackend::EmulatedBackend(Memory& memory, DeviceDescription device)
    : memory_(memory), device_(std::move(device)) {
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
  progress();
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

void EmulatedBackend::copy(const Tensor& from, const Tensor&) {
  spend("copy", 0, 2.0 * static_cast<double>(from.bytes()), from.dtype);
}
void EmulatedBackend::download(const Tensor& from, void* host) {
  std::fill_n(static_cast<std::byte*>(host), from.bytes(), std::byte{0});
}
std::unique_ptr<PricingBackend> make_pricing_backend(Memory& memory, const DeviceDescription& device) {
  return std::make_unique<EmulatedBackend>(memory, device);
}

}  // namespace mindpipe
