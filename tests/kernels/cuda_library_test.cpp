// thorough without a GPU
#include <gtest/gtest.h>

#include "cuda/device/flash.h"
#include "cuda/fused_attention.h"
#include "hardware.h"
#include "kernels/attention_cases.h"
#include "kernels/operand.h"
#include "make_backend.h"
#include "operations/attention.h"

/// Products and attention on a GPU, where there is one: against the CPU, and against themselves at other
/// addresses.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

class CudaLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU that this process may use: " << gpu_devices();
    gpu_ = make_cuda_backend(memory_, 0);
  }
  void TearDown() override { blocks_.clear(); }

  /// A copy in the GPU's memory, or none of none. Each lies `skew` bytes (a multiple of 16) further from an
  /// aligned address than the one before.
  Tensor copied(const Tensor& host, std::size_t skew = 0) {
    if (!host) return {};
    const Arena& block =
        blocks_.emplace_back(memory_, MemoryClass::workspace, host.bytes() + blocks_.size() * skew);
    const Tensor there{block.address_of(blocks_.size() * skew - skew), host.shape, host.dtype};
    gpu_->upload(host.data, there);
    return there;
  }
  void fetch(const Tensor& there, const Tensor& host) { gpu_->download(there, host.data); }

  Memory memory_{Memory::Kind::device};
  std::unique_ptr<Backend> gpu_;
  Cpu cpu_{2};
  std::vector<Arena> blocks_;
};

// -- products
// ----------------------------------------------------------------------------------------------------

struct Sizes {
  std::int64_t n, k, m;
};
const Sizes shapes[] = {{64, 32, 48},    {33, 40, 24},    {1, 768, 64},   {17, 13, 7},
                        {130, 256, 512}, {200, 64, 1000}, {96, 768, 3072}};

double product_tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 1e-2;
}

void expect_close_to(const Operand& got, const Operand& want, double tolerance) {
  ASSERT_EQ(got.count(), want.count());
  for (std::int64_t i = 0; i < want.count(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i])))
        << "element " << i << " of " << want.count();
}

/// All operands of a product, sums being of size 1, on the host.
struct Factors {
  Operand x, w, bias, dy;
  Factors(const Sizes& s, DType dtype)
      : x(Operand::random({s.n, s.k}, dtype, "x")),
        w(Operand::random({s.m, s.k}, dtype, "w", 1 / std::sqrt(static_cast<double>(s.k)))),
        bias(Operand::random({s.m}, dtype, "bias")),
        dy(Operand::random({s.n, s.m}, dtype, "dy", 1 / std::sqrt(static_cast<double>(s.m)))) {}
};

constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::silu,
                                      Activation::gelu_exact};

TEST_F(CudaLibrary, LinearIsThatOfTheProcessor) {
  for (const Sizes& s : shapes)
    for (DType dtype : number_types) {
      const Factors f(s, dtype);
      for (DType result : {dtype, wide_of(dtype)})
        for (Activation activation : activations)
          for (int with = 0; with < 4; ++with) {
            SCOPED_TRACE(fmt::format("{} x {} x {}, {} to {}, activation {}, bias {}, before {}", s.n, s.k,
                                     s.m, name_of(dtype), name_of(result), static_cast<int>(activation),
                                     with & 1, with & 2));
            blocks_.clear();
            Operand y({s.n, s.m}, result), before({s.n, s.m}, result), got(y.tensor().shape, result),
                got_before(y.tensor().shape, result);
            const Tensor bias = (with & 1) != 0 ? f.bias.tensor() : Tensor{},
                         kept = (with & 2) != 0 ? before.tensor() : Tensor{};
            cpu_->linear(
                {.x = f.x, .w = f.w, .bias = bias, .activation = activation, .before = kept, .y = y});
            const Tensor there = copied(got), there_before = copied(kept);
            gpu_->linear({copied(f.x), copied(f.w), copied(bias), activation, there_before, there});
            fetch(there, got);
            expect_close_to(got, y, product_tolerance(result));
            if (!there_before) continue;
            fetch(there_before, got_before);
            expect_close_to(got_before, before, product_tolerance(result));
          }
    }
}

TEST_F(CudaLibrary, GradientsOfLinearAreThoseOfTheProcessor) {
  for (const Sizes& s : shapes)
    for (DType dtype : number_types) {
      const Factors f(s, dtype);
      for (DType result : {dtype, wide_of(dtype)})
        for (Activation activation : activations) {
          SCOPED_TRACE(fmt::format("{} x {} x {}, {} to {}, activation {}", s.n, s.k, s.m, name_of(dtype),
                                   name_of(result), static_cast<int>(activation)));
          blocks_.clear();
          const Operand before = Operand::random({s.n, s.k}, dtype, "before");
          Operand dx({s.n, s.k}, result), got(dx.tensor().shape, result);
          cpu_->linear_backward_input(
              {.dy = f.dy, .w = f.w, .activation = activation, .before = before, .dx = dx});
          const Tensor there = copied(got);
          gpu_->linear_backward_input({copied(f.dy), copied(f.w), activation, copied(before), there});
          fetch(there, got);
          expect_close_to(got, dx, product_tolerance(result));
        }
      for (const bool is_first : {true, false}) {
        Operand dw = Operand::random({s.m, s.k}, wide_of(dtype), "dw");
        if (is_first) dw.set(0, std::nan(""));
        Operand got = dw.copy();
        const Tensor there = copied(got);
        cpu_->linear_backward_weight({f.dy, f.x, dw, is_first});
        gpu_->linear_backward_weight({copied(f.dy), copied(f.x), there, is_first});
        fetch(there, got);
        expect_close_to(got, dw, dtype == DType::f64 ? 1e-12 : 1e-5);
      }
    }
}

TEST_F(CudaLibrary, F32ProductsAreNotRoundedToTf32) {
  // 1 + 2^-12 is lost to TF32's ten bits: the sum would be 64.
  Operand x({64, 64}, DType::f32), w({64, 64}, DType::f32), got({64, 64}, DType::f32);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    x.set(i, 1 + 0x1p-12);
    w.set(i, 1);
  }
  const Tensor there = copied(got);
  gpu_->linear({.x = copied(x), .w = copied(w), .y = there});
  fetch(there, got);
  EXPECT_EQ(got[0], 64 + 64 * 0x1p-12);
}

TEST_F(CudaLibrary, AShardHasTheSameBitsWhereverItLies) {
  for (const Sizes& s : {Sizes{64, 32, 48}, Sizes{128, 256, 512}, Sizes{96, 768, 3072}})
    for (DType dtype : {DType::f32, DType::bf16})
      for (Activation activation : {Activation::none, Activation::gelu}) {
        const Factors f(s, dtype);
        std::vector<Operand> y, dx, dw;
        for (std::size_t skew : {0, 16, 48, 256}) {
          blocks_.clear();
          const Tensor x = copied(f.x, skew), w = copied(f.w, skew), dy = copied(f.dy, skew),
                       bias = copied(f.bias, skew);
          const Tensor y_there = copied(y.emplace_back(Shape{s.n, s.m}, dtype), skew),
                       before = copied(y.back(), skew),
                       dx_there = copied(dx.emplace_back(Shape{s.n, s.k}, dtype), skew),
                       dw_there = copied(dw.emplace_back(Shape{s.m, s.k}, DType::f32), skew);
          gpu_->linear({x, w, bias, activation, activation == Activation::none ? Tensor{} : before, y_there});
          gpu_->linear_backward_input(
              {.dy = dy, .w = w, .activation = activation, .before = x, .dx = dx_there});
          gpu_->linear_backward_weight({dy, x, dw_there});
          fetch(y_there, y.back());
          fetch(dx_there, dx.back());
          fetch(dw_there, dw.back());
          EXPECT_TRUE(same_bits(y.front(), y.back()) && same_bits(dx.front(), dx.back()) &&
                      same_bits(dw.front(), dw.back()))
              << name_of(dtype) << ", " << skew << " bytes further";
        }
      }
}

// -- attention
// ----------------------------------------------------------------------------------------------------

/// The operands of an attention on the GPU. What has to be written begins as NaN.
struct Answer {
  Tensor q, kv, dout, log_sum, out, dq, dkv;
  AttentionParameters parameters;
};

class CudaAttention : public CudaLibrary {
 protected:
  Answer asked_there(Asked& a, std::size_t skew) {
    for (Owned* written : {&a.out, &a.log_sum, &a.dq, &a.dkv})
      std::memset(written->memory.data(), 0xff, written->memory.size());
    Answer there{copied(a.q.tensor, skew),    copied(a.kv.tensor, skew),
                 copied(a.dout.tensor, skew), copied(a.log_sum.tensor, skew),
                 copied(a.out.tensor, skew),  copied(a.dq.tensor, skew),
                 copied(a.dkv.tensor, skew),  a.parameters};
    there.parameters.key_lengths = copied(a.parameters.key_lengths);
    return there;
  }
  static Heads part(const Tensor& tensor, const Heads& of) { return {tensor, of.first, of.count}; }
  /// Computes both passes by the backend, or by our own kernels.
  void run(Asked& a, const Answer& t, bool own) {
    const Heads q = part(t.q, a.query_heads()), k = part(t.kv, a.k()), v = part(t.kv, a.v()),
                dq = part(t.dq, a.query_heads()), dk = part(t.dkv, a.k()), dv = part(t.dkv, a.v());
    const AttentionBackwardOperands operands{t.parameters, q, k, v, t.log_sum, t.out, t.dout, dq, dk, dv};
    if (own) {
      const AttentionCall call = operands.checked();
      gpu_->synchronize();
      ASSERT_EQ(cuda::flash_forward(call, a.dtype == DType::bf16, nullptr), cudaSuccess);
      ASSERT_EQ(cuda::flash_backward(call, a.dtype == DType::bf16, nullptr), cudaSuccess);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    } else {
      gpu_->attention(operands.forward());
      gpu_->attention_backward(operands);
    }
    for (const auto& [from, to] : {std::pair(t.out, a.out.tensor), std::pair(t.log_sum, a.log_sum.tensor),
                                   std::pair(t.dq, a.dq.tensor), std::pair(t.dkv, a.dkv.tensor)})
      fetch(from, to);
  }
};

/// Larger than those of the CPU's tests: several tiles, training's shapes, padding with whole and empty
/// samples.
const Case large_cases[] = {
    {.name = "GPT-2's heads",
     .samples = 2,
     .queries = 256,
     .keys = 256,
     .heads = 4,
     .key_heads = 4,
     .width = 64,
     .causal = true,
     .scale = 0.125f},
    {.name = "grouped 128",
     .samples = 1,
     .queries = 200,
     .keys = 200,
     .heads = 8,
     .key_heads = 2,
     .width = 128,
     .causal = true,
     .scale = 0.09f},
    {.name = "padded 64",
     .samples = 4,
     .queries = 192,
     .keys = 192,
     .heads = 2,
     .key_heads = 2,
     .width = 64,
     .lengths = {192, 1, 0, 100},
     .scale = 0.125f},
    {.name = "cross 64",
     .samples = 2,
     .queries = 96,
     .keys = 300,
     .heads = 2,
     .key_heads = 2,
     .width = 64,
     .scale = 0.125f},
    {.name = "lower right",
     .samples = 2,
     .queries = 64,
     .keys = 160,
     .heads = 2,
     .key_heads = 2,
     .width = 64,
     .causal = true,
     .scale = 0.125f},
    {.name = "dropout 64",
     .samples = 2,
     .queries = 256,
     .keys = 256,
     .heads = 2,
     .key_heads = 2,
     .width = 64,
     .causal = true,
     .dropout = 0.1f,
     .scale = 0.125f},
};

/// All cases by the backend's choice or by our own kernels: what is written agrees with the book.
class CudaAttentionCases : public CudaAttention {
 protected:
  void check(const std::vector<DType>& dtypes, bool own) {
    std::vector<Case> all(std::begin(cases), std::end(cases));
    all.insert(all.end(), std::begin(large_cases), std::end(large_cases));
    for (const Case& c : all)
      for (DType dtype : dtypes) {
        SCOPED_TRACE(fmt::format("{}, {}", c.name, name_of(dtype)));
        blocks_.clear();
        Asked asked(c, dtype);
        run(asked, asked_there(asked, 0), own);
        const Reference reference(asked);
        const Tolerance t = tolerance_of_attention(dtype);
        EXPECT_LE(difference(asked.out, reference.out), t.out);
        EXPECT_LE(difference(asked.log_sum, reference.log_sum), t.log_sum);
        EXPECT_LE(difference_of_heads(asked.dq, reference.dq, c.queries, 1, static_cast<int>(c.heads)),
                  t.gradient);
        EXPECT_LE(difference_of_heads(asked.dkv, reference.dkv, c.keys, 0, static_cast<int>(2 * c.key_heads)),
                  t.gradient);
      }
  }

 private:
  struct Tolerance {
    double out, log_sum, gradient;
  };
  static Tolerance tolerance_of_attention(DType dtype) {
    if (dtype == DType::f64) return {1e-12, 1e-12, 1e-12};
    return dtype == DType::f32 ? Tolerance{1e-5, 1e-5, 2e-5} : Tolerance{0.01, 1e-4, 0.02};
  }
};

TEST_F(CudaAttentionCases, TheBackendsChoiceAgreesWithTheBook) {
  check({DType::f64, DType::f32, DType::bf16}, false);
}
TEST_F(CudaAttentionCases, OurOwnKernelsAgreeWithTheBook) { check({DType::f32, DType::bf16}, true); }

TEST_F(CudaAttention, BitsDoNotDependOnAddressesOrOnTheRun) {
  for (const Case& c : large_cases)
    for (DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{}, {}", c.name, name_of(dtype)));
      Asked first(c, dtype);
      run(first, asked_there(first, 0), false);
      for (std::size_t skew : {0, 16, 256}) {
        blocks_.clear();
        Asked again(c, dtype);
        run(again, asked_there(again, skew), false);
        EXPECT_TRUE(same_bits(first.out, again.out) && same_bits(first.log_sum, again.log_sum) &&
                    same_bits(first.dq, again.dq) && same_bits(first.dkv, again.dkv));
      }
    }
}

}  // namespace
