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

EmulatedBackend::EmulatedBackend(Memory& memory, DeviceDescription device, bool wants_many_rows)
    : memory_(memory), device_(std::move(device)), wants_many_rows_(wants_many_rows) {
  MP_CHECK(memory.kind() == Memory::Kind::counted, "an emulated device counts its memory");
}

double EmulatedBackend::spend(std::string_view name, double flops, double bytes, DType dtype, double slower,
                              double beside, int kernels) {
  for (const std::uint64_t part : {purpose_of(name), std::bit_cast<std::uint64_t>(flops),
                                   std::bit_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(dtype)})
    work_ = mixed(work_ ^ part);
  const double rate = dtype == DType::bf16 ? device_.flops_bf16 : device_.flops_f32;
  const double cost = std::max(slower * flops / rate, (bytes + beside) / device_.bytes);
  seconds_ += kernels * device_.launch + cost;
  flops_ += flops;
  progress();
  return cost;
}

void EmulatedBackend::tell_of(const ProductCall& call) {
  using Kind = ProductCall::Kind;
  if (workspace_ == nullptr) return;
  if (call.kind == Kind::forward) workspace_->product(call.operands, call.n, call.m, call.k);
  if (call.kind == Kind::backward_input) workspace_->product(call.operands, call.n, call.k, call.m);
  if (call.kind == Kind::backward_weight || call.kind == Kind::first_weight)
    workspace_->product(call.operands, call.m, call.k, call.n);
}

void EmulatedBackend::copy(const Tensor& from, const Tensor&) {
  const auto bytes = static_cast<double>(from.bytes());
  const double seconds = spend("copy", 0, 2 * bytes, from.dtype);
  if (told_) told_({"copy", 0, bytes, bytes, 1, seconds});
}
void EmulatedBackend::download(const Tensor& from, void* host) {
  std::fill_n(static_cast<std::byte*>(host), from.bytes(), std::byte{0});
}
std::unique_ptr<PricingBackend> make_pricing_backend(Memory& memory, const DeviceDescription& device,
                                                     bool wants_many_rows) {
  return std::make_unique<EmulatedBackend>(memory, device, wants_many_rows);
}

}  // namespace mindpipe
