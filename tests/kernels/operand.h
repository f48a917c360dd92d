#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/isa.h"
#include "make_backend.h"

/// What tests of kernels share: tensors with memory of their own, backends of every instruction set,
/// tolerances by dtype.
namespace mindpipe::testing {

/// A tensor with memory of its own, `skew` elements away from an aligned address. Reads and writes as
/// doubles.
class Operand {
 public:
  Operand(const Shape& shape, DType dtype, std::size_t skew = 0)
      : memory_((static_cast<std::size_t>(shape.count()) + skew) * bytes_of(dtype) / sizeof(Line) + 1),
        shape_(shape),
        dtype_(dtype),
        skew_(skew) {}
  /// Normal numbers, a function of the name.
  static Operand random(const Shape& shape, DType dtype, std::string_view name, double deviation = 1,
                        std::size_t skew = 0) {
    Operand made(shape, dtype, skew);
    const RandomStream stream{.seed = 7, .purpose = purpose_of(name)};
    for (std::int64_t i = 0; i < made.count(); ++i)
      made.set(i, deviation * stream.normal(static_cast<std::uint64_t>(i)));
    return made;
  }
  static Operand tokens(const std::vector<std::int32_t>& ids) {
    Operand made({static_cast<std::int64_t>(ids.size())}, DType::i32);
    std::copy(ids.begin(), ids.end(), made.tensor().as<std::int32_t>());
    return made;
  }

  Tensor tensor() const {
    auto* base = reinterpret_cast<std::byte*>(
        const_cast<Line*>(memory_.data()));  // a view may write, as every Tensor may
    return {base + skew_ * bytes_of(dtype_), shape_, dtype_};
  }
  operator Tensor() const { return tensor(); }
  std::int64_t count() const { return shape_.count(); }
  DType dtype() const { return dtype_; }

  double operator[](std::int64_t i) const {
    const Tensor t = tensor();
    switch (dtype_) {
      case DType::f64:
        return t.as<double>()[i];
      case DType::f32:
        return static_cast<double>(t.as<float>()[i]);
      case DType::bf16:
        return static_cast<double>(
            std::bit_cast<float>(static_cast<std::uint32_t>(t.as<std::uint16_t>()[i]) << 16));
      case DType::i32:
        return t.as<std::int32_t>()[i];
      case DType::u8:
        return t.as<std::uint8_t>()[i];
      case DType::i64:
        return static_cast<double>(t.as<std::int64_t>()[i]);
    }
    return 0;
  }
  void set(std::int64_t i, double value) {
    const Tensor t = tensor();
    if (dtype_ == DType::f64) t.as<double>()[i] = value;
    else if (dtype_ == DType::f32) t.as<float>()[i] = static_cast<float>(value);
    else if (dtype_ == DType::i32) t.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    else if (dtype_ == DType::i64) t.as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
    else if (dtype_ == DType::u8) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
    else
      t.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(
          (std::bit_cast<std::uint32_t>(static_cast<float>(value)) + 0x8000u) >> 16);
  }
  std::vector<double> values() const {
    std::vector<double> all(static_cast<std::size_t>(count()));
    for (std::int64_t i = 0; i < count(); ++i) all[static_cast<std::size_t>(i)] = (*this)[i];
    return all;
  }
  Operand copy(std::size_t skew = 0) const {
    Operand made(shape_, dtype_, skew);
    std::memcpy(made.tensor().data, tensor().data, tensor().bytes());
    return made;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> memory_;
  Shape shape_;
  DType dtype_;
  std::size_t skew_;
};

/// A decision in memory of its own: what the host would have decided.
inline Operand decided(const AdamW& rule, std::int64_t applied_steps, double gradient_factor = 1,
                       std::size_t skew = 0) {
  Operand made({Decision::places}, DType::f64, skew);
  made.set(Decision::gradient_factor, gradient_factor);
  made.set(Decision::applied_steps, static_cast<double>(applied_steps));
  made.set(Decision::first_correction,
           1 - std::pow(static_cast<double>(rule.beta1), static_cast<double>(applied_steps)));
  made.set(Decision::second_correction,
           1 / std::sqrt(1 - std::pow(static_cast<double>(rule.beta2), static_cast<double>(applied_steps))));
  return made;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.count() == b.count() && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

/// A CPU backend and the memory it stands on.
struct Cpu {
  Memory memory{Memory::Kind::host};
  std::unique_ptr<Backend> backend;
  explicit Cpu(int threads = 1, const std::string& instructions = "auto")
      : backend(make_cpu_backend(memory, threads, instructions)) {}
  Backend* operator->() const { return backend.get(); }
};

/// The instruction sets that this processor has.
inline std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (processor_has(isa)) sets.push_back(isa);
  return sets;
}

inline constexpr DType number_types[] = {DType::f64, DType::f32, DType::bf16};
inline DType wide_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
inline double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 2e-6 : 4e-3;
}

/// check(cpu, dtype) for every instruction set and number type, on one thread.
template <class Check>
void for_every_kind(const Check& check) {
  for (Isa isa : instruction_sets())
    for (DType dtype : number_types) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(isa), dtype));
      check(Cpu(1, name_of(isa)), dtype);
    }
}

/// Every element within the tolerance of its dtype, relative to numbers above 1.
inline void expect_close(const Operand& got, const std::vector<double>& want, double slack = 1) {
  ASSERT_EQ(static_cast<std::size_t>(got.count()), want.size());
  const double tolerance = slack * tolerance_of(got.dtype());
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const double expected = want[static_cast<std::size_t>(i)];
    ASSERT_NEAR(got[i], expected, tolerance * std::max(1.0, std::abs(expected)))
        << "element " << i << " of " << got.count();
  }
}

/// run(cpu, dtype) returns outputs: the same bits on 1, 2 and 3 threads.
template <class Run>
void expect_same_bits_on_threads(const Run& run) {
  for (Isa isa : instruction_sets())
    for (DType dtype : number_types) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(isa), dtype));
      const std::vector<Operand> alone = run(Cpu(1, name_of(isa)), dtype);
      for (int threads : {2, 3}) {
        const std::vector<Operand> together = run(Cpu(threads, name_of(isa)), dtype);
        ASSERT_EQ(alone.size(), together.size());
        for (std::size_t i = 0; i < alone.size(); ++i)
          EXPECT_TRUE(same_bits(alone[i], together[i])) << threads << " threads, output " << i;
      }
    }
}

}  // namespace mindpipe::testing
