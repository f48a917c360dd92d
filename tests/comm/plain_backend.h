#pragma once
#include <cstring>
#include <vector>

#include "backend.h"

namespace mindpipe {

/// The bits of a float rounded to bf16, to nearest, ties to even.
inline std::uint16_t rounded_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline float widened(std::uint16_t x) {
  const std::uint32_t bits = std::uint32_t{x} << 16;
  float y;
  std::memcpy(&y, &bits, 4);
  return y;
}

/// A backend on which every operation is a mistake.
class BackendWithoutArithmetic : public Backend {
 public:
#define MINDPIPE_MISTAKE(name, Operands) \
  void name(const Operands&) override { unused(#name); }
  MINDPIPE_OPERATIONS(MINDPIPE_MISTAKE)
#undef MINDPIPE_MISTAKE
  std::int64_t count_not_finite(const Tensor&) override { unused("count_not_finite"); }
  std::uint64_t hash(const Tensor&) override { unused("hash"); }

 protected:
  [[noreturn]] static void unused(const char* name) {
    fail(Exit::internal, "communication asked for {}", name);
  }
};

/// The few operations that communication asks for, each a plain loop; the others are mistakes.
class PlainBackend : public BackendWithoutArithmetic {
 public:
  explicit PlainBackend(Memory& memory) : memory_(memory) {}
  std::string description() const override { return "plain"; }
  Memory& memory() override { return memory_; }

  void add(const AddOperands& operands) override {
    const Tensor &a = operands.a, &b = operands.b, &sum = operands.sum;
    MP_CHECK(a.count() == b.count() && a.count() == sum.count() && a.dtype == b.dtype && a.dtype == sum.dtype,
             "add of unlike tensors");
    for (std::int64_t i = 0; i < a.count(); ++i) {
      if (a.dtype == DType::bf16)
        sum.as<std::uint16_t>()[i] =
            rounded_bf16(widened(a.as<std::uint16_t>()[i]) + widened(b.as<std::uint16_t>()[i]));
      else if (a.dtype == DType::i64)
        sum.as<std::int64_t>()[i] = a.as<std::int64_t>()[i] + b.as<std::int64_t>()[i];
      else if (a.dtype == DType::f32) sum.as<float>()[i] = a.as<float>()[i] + b.as<float>()[i];
      else sum.as<double>()[i] = a.as<double>()[i] + b.as<double>()[i];
    }
    progress();
  }
  void add_tree(const AddTreeOperands& operands) override {
    operands.check();
    std::vector<std::vector<std::byte>> open;
    const Tensor& sum = operands.sum;
    const auto tensor = [&](std::vector<std::byte>& memory) {
      return Tensor{memory.data(), sum.shape, sum.dtype};
    };
    for (std::size_t term = 0; term < operands.terms.size(); ++term) {
      const auto* from = operands.terms[term].as<std::byte>();
      open.emplace_back(from, from + sum.bytes());
      for (int i = 0; i < operands.joins[term]; ++i, open.pop_back()) {
        const Tensor left = tensor(open[open.size() - 2]);
        add({left, tensor(open.back()), left});
      }
    }
    std::memcpy(sum.data, open.front().data(), sum.bytes());
  }
  void maximum(const MaximumOperands& operands) override {
    const Tensor &a = operands.a, &b = operands.b, &largest = operands.largest;
    MP_CHECK(a.dtype == b.dtype && (a.dtype == DType::f32 || a.dtype == DType::f64), "maximum of {} and {}",
             name_of(a.dtype), name_of(b.dtype));
    const auto pick = [&]<class T>(T) {
      for (std::int64_t i = 0; i < a.count(); ++i) {
        const T x = a.as<T>()[i], y = b.as<T>()[i];
        largest.as<T>()[i] = x > y || x != x ? x : y;
      }
    };
    if (a.dtype == DType::f32) pick(0.0f);
    else pick(0.0);
    progress();
  }
  void copy(const Tensor& from, const Tensor& to) override {
    MP_CHECK(from.bytes() == to.bytes(), "copy of unlike tensors");
    std::memmove(to.data, from.data, from.bytes());
  }

  void upload(const void*, const Tensor&) override { unused("upload"); }
  void download(const Tensor&, void*) override { unused("download"); }
  void use_queue(Queue) override { unused("use_queue"); }
  std::uint64_t record(Queue) override { unused("record"); }
  void wait(Queue, std::uint64_t) override { unused("wait"); }
  bool finished(std::uint64_t) override { unused("finished"); }
  void synchronize() override { unused("synchronize"); }
  std::uint64_t mark(Queue) override { unused("mark"); }
  std::int64_t nanoseconds_between(std::uint64_t, std::uint64_t) override { unused("nanoseconds_between"); }
  void keep_marks(std::size_t) override { unused("keep_marks"); }

 private:
  Memory& memory_;
};

}  // namespace mindpipe
