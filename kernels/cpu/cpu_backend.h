#pragma once
#include "backend.h"
#include "cpu/attention.h"
#include "cpu/isa.h"
#include "cpu/products.h"
#include "cpu/rotary_table.h"

namespace mindpipe {

/// The operations on the CPU: shapes are checked and work is divided among OpenMP threads here, arithmetic is
/// in cpu/simd. `run` of each operation stands in the file that is named after its kernels.
class CpuBackend final : public ImmediateBackend {
 public:
  CpuBackend(Memory& memory, int threads, const std::string& instructions);

  std::string description() const override;
  Memory& memory() override { return memory_; }
  MINDPIPE_OPERATIONS(MINDPIPE_OVERRIDE)
  std::int64_t count_not_finite(const Tensor& x) override;
  std::uint64_t hash(const Tensor& x) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void upload(const void* host, const Tensor& to) override;
  void download(const Tensor& from, void* host) override;
  void synchronize() override { progress(); }
  void reserve(const Workspace& workspace) override;

 private:
  void done(const char*) { progress(); }
  /// One operation after the other.
  template <class Operands>
  void run_in_turn(const Operands& operands) {
    operands.in_turn([this](const char* name, const auto& one) {
      check(one);
      run(one);
      done(name);
    });
  }
  void multiply(const Product& product);

  Memory& memory_;
  int threads_;
  Isa isa_;
  WorkArea product_area_;
  RotaryTable rotary_table_;
  AttentionScratch attention_scratch_;
};

}  // namespace mindpipe
