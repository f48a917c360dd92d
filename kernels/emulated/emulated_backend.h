#pragma once
#include <string_view>

#include "make_backend.h"

namespace mindpipe {

/// No arithmetic and no tensor memory: addresses are counted, never followed. Each operation adds what it
/// costs to a tally, from shapes alone, and goes on at once: whoever imitates a device lets passes last.
class EmulatedBackend final : public PricingBackend {
 public:
  EmulatedBackend(Memory& memory, DeviceDescription device, bool wants_many_rows = false);

  double seconds() const override { return seconds_; }
  double operations() const override { return flops_; }
  std::uint64_t work() const override { return work_; }
  void forget_work() override { work_ = 0; }
  const DeviceDescription& device() const override { return device_; }
  void tell(WorkspaceOnPaper& workspace) override { workspace_ = &workspace; }
  void on_operation(std::function<void(const Asked&)> observer) override { told_ = std::move(observer); }

  std::string description() const override { return "emulated: " + device_.name; }
  Memory& memory() override { return memory_; }
  bool wants_many_rows() const override { return wants_many_rows_; }
#define MINDPIPE_DECLARED(name, Operands) void name(const Operands& operands) override;
  MINDPIPE_OPERATIONS(MINDPIPE_DECLARED)
#undef MINDPIPE_DECLARED
  std::int64_t count_not_finite(const Tensor& x) override;
  std::uint64_t hash(const Tensor& x) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void upload(const void*, const Tensor&) override {}
  void download(const Tensor& from, void* host) override;
  void synchronize() override {}

 private:
  /// Spends what an operation costs; whoever listens hears of it, and of what takes working memory.
  template <class Operands>
  void price(std::string_view name, const Operands& operands);
  /// Working memory is told a result's rows and columns, and the depth.
  void tell_of(const ProductCall& call);
  /// `slower`: times as long as its operations take at the device's full rate; `beside`: bytes that this
  /// device moves and others do not; `kernels`: how many it starts. Gives back the seconds without those that
  /// starting takes.
  double spend(std::string_view name, double flops, double bytes, DType dtype, double slower = 1,
               double beside = 0, int kernels = 1);

  Memory& memory_;
  DeviceDescription device_;
  WorkspaceOnPaper* workspace_ = nullptr;
  std::function<void(const Asked&)> told_;
  bool wants_many_rows_;
  double seconds_ = 0, flops_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace mindpipe
