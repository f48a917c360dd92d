#pragma once
#include <cstring>

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

/// Backend with the few operations that communication asks for, each a plain loop; calling another one is a
/// mistake.
class PlainBackend : public Backend {
 public:
  explicit PlainBackend(Memory& memory) : memory_(memory) {}
  std::string description() const override { return "plain"; }
  Memory& memory() override { return memory_; }

  void add(const Tensor& a, const Tensor& b, const Tensor& sum) override {
    MP_CHECK(a.count() == b.count() && a.count() == sum.count() && a.dtype == b.dtype && a.dtype == sum.dtype,
             "add of unlike tensors");
    for (std::int64_t i = 0; i < a.count(); ++i) {
      if (a.dtype == DType::bf16)
        sum.as<std::uint16_t>()[i] =
            rounded_bf16(widened(a.as<std::uint16_t>()[i]) + widened(b.as<std::uint16_t>()[i]));
      else if (a.dtype == DType::f32) sum.as<float>()[i] = a.as<float>()[i] + b.as<float>()[i];
      else sum.as<double>()[i] = a.as<double>()[i] + b.as<double>()[i];
    }
    progress();
  }
  void maximum(const Tensor& a, const Tensor& b, const Tensor& largest) override {
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

  void fill(const Tensor&, double) override { unused("fill"); }
  void linear(const Tensor&, const Tensor&, const Tensor&, Activation, const Tensor&,
              const Tensor&) override {
    unused("linear");
  }
  void linear_backward_input(const Tensor&, const Tensor&, Activation, const Tensor&,
                             const Tensor&) override {
    unused("linear_backward_input");
  }
  void linear_backward_weight(const Tensor&, const Tensor&, const Tensor&) override {
    unused("linear_backward_weight");
  }
  void bias_backward(const Tensor&, const Tensor&) override { unused("bias_backward"); }
  void swiglu(const Tensor&, const Tensor&) override { unused("swiglu"); }
  void swiglu_backward(const Tensor&, const Tensor&, const Tensor&) override { unused("swiglu_backward"); }
  void residual(const Tensor&, const Tensor&, const Tensor&, const Dropout&, const Window&,
                const Tensor&) override {
    unused("residual");
  }
  void dropout(const Tensor&, const Dropout&, const Window&, const Tensor&) override { unused("dropout"); }
  void accumulate(const Tensor&, const Tensor&) override { unused("accumulate"); }
  void convert(const Tensor&, const Tensor&) override { unused("convert"); }
  void norm(NormKind, const Tensor&, const Tensor&, const Tensor&, double, const Tensor&,
            const Tensor&) override {
    unused("norm");
  }
  void residual_norm(const Tensor&, const Tensor&, const Tensor&, const Dropout&, const Window&,
                     const Tensor&, NormKind, const Tensor&, const Tensor&, double, const Tensor&,
                     const Tensor&) override {
    unused("residual_norm");
  }
  void norm_backward_input(NormKind, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                           const Tensor&, const Tensor&) override {
    unused("norm_backward_input");
  }
  void norm_backward_parameters(NormKind, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const Tensor&) override {
    unused("norm_backward_parameters");
  }
  void rotary(const Heads&, double, std::int64_t, bool) override { unused("rotary"); }
  void embedding(const Tensor&, const Tensor&, std::int64_t, const Tensor&) override { unused("embedding"); }
  void embedding_backward(const Tensor&, const Tensor&, std::int64_t, const Tensor&) override {
    unused("embedding_backward");
  }
  void add_positions(const Tensor&, const Tensor&, const Window&, std::int64_t, const Tensor&) override {
    unused("add_positions");
  }
  void positions_backward(const Tensor&, const Window&, std::int64_t, const Tensor&) override {
    unused("positions_backward");
  }
  void attention(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&,
                 const Tensor&) override {
    unused("attention");
  }
  void attention_backward(const AttentionQuestion&, const Heads&, const Heads&, const Heads&, const Tensor&,
                          const Tensor&, const Tensor&, const Heads&, const Heads&, const Heads&) override {
    unused("attention_backward");
  }
  void row_maximum(const Tensor&, std::int64_t, const Tensor&) override { unused("row_maximum"); }
  void row_sums(const Tensor&, std::int64_t, std::int64_t, const Tensor&, const Tensor&, const Tensor&,
                const Tensor&, const Tensor&) override {
    unused("row_sums");
  }
  void cross_entropy(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, double,
                     std::int64_t, const Tensor&) override {
    unused("cross_entropy");
  }
  void cross_entropy_backward(const Tensor&, std::int64_t, std::int64_t, const Tensor&, const Tensor&,
                              const Tensor&, double, double, std::int64_t, const Tensor&) override {
    unused("cross_entropy_backward");
  }
  void sum_squares(const Tensor&, const Tensor&) override { unused("sum_squares"); }
  std::int64_t count_not_finite(const Tensor&) override { unused("count_not_finite"); }
  void sum_spans(const Tensor&, const Tensor&, const Tensor&) override { unused("sum_spans"); }
  void decide(const StepRule&, const Tensor&, const Tensor&) override { unused("decide"); }
  void adamw(const AdamW&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
             const Tensor&) override {
    unused("adamw");
  }
  void sgd(const Sgd&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {
    unused("sgd");
  }
  void upload(const void*, const Tensor&) override { unused("upload"); }
  void download(const Tensor&, void*) override { unused("download"); }
  void use_queue(int) override { unused("use_queue"); }
  std::uint64_t record(int) override { unused("record"); }
  void wait(int, std::uint64_t) override { unused("wait"); }
  bool finished(std::uint64_t) override { unused("finished"); }
  void synchronize() override { unused("synchronize"); }
  std::uint64_t mark(int) override { unused("mark"); }
  std::int64_t nanoseconds_between(std::uint64_t, std::uint64_t) override { unused("nanoseconds_between"); }
  void keep_marks(std::size_t) override { unused("keep_marks"); }

 private:
  [[noreturn]] static void unused(const char* name) {
    fail(Exit::internal, "communication asked for {}", name);
  }
  Memory& memory_;
};

}  // namespace mindpipe
