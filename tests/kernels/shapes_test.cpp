#include "core/sha256.h"
#include "golden_lines.h"
#include "kernels/attention_cases.h"
#include "kernels/operand.h"
#include "kernels/products_model.h"
#include "kernels/unit_models/unit_models.h"

// Bits of kernels at the shapes where they change their ways: more depths than one chain of a product has,
// more keys than one tile of attention, more columns than one chunk of a softmax, few queries and few rows.
// Tiny models are below most of these, and the name of the arithmetic counts "kernels by shape" by these
// digests.
namespace mindpipe {
namespace {

class Digest {
 public:
  void add(const Tensor& t) { digest_.add(t.data, t.bytes()); }
  void add(const testing_products::Values& v) {
    v.bf16 ? digest_.add(v.half.data(), v.half.size() * sizeof(v.half[0]))
           : digest_.add(v.full.data(), v.full.size() * sizeof(v.full[0]));
  }
  std::string end() { return to_string(digest_.end()).substr(0, 16); }

 private:
  Sha256 digest_;
};

std::string of_products(const ProductKernels& kernels, bool bf16) {
  using testing_products::Form;
  constexpr std::int64_t sizes[][3] = {{3, 33, 255},  {5, 33, 257},   {4, 70, 513}, {9, 20, 1030},
                                       {2, 15, 2600}, {600, 20, 300}, {2, 64, 31},  {1, 96, 2100}};
  Digest digest;
  for (Form form : {Form::forward, Form::backward_input, Form::backward_weight})
    for (const auto& [rows, cols, depth] : sizes) {
      testing_products::Case given(form, rows, cols, depth, bf16, bf16 && form != Form::backward_weight);
      testing_products::run(kernels, given.product, 1);
      digest.add(given.c);
    }
  return digest.end();
}

std::string of_attention(const AttentionKernels& kernels, const AttentionKernels* few, DType dtype) {
  const testing::Case cases[] = {
      {.queries = 1, .keys = 300, .width = 24},
      {.queries = 4, .keys = 70, .width = 64},
      {.queries = 5, .keys = 300, .width = 24},
      {.queries = 97, .keys = 97, .width = 40, .causal = true},
      {.queries = 130, .keys = 130, .heads = 4, .key_heads = 2, .width = 16, .dropout = 0.25f},
      {.queries = 33, .keys = 400, .width = 16, .lengths = {129, 400}}};
  Digest digest;
  for (const testing::Case& c : cases) {
    testing::Asked asked(c, dtype);
    const bool by_few = few != nullptr && is_few(asked.operands().checked());
    asked.forward(by_few ? *few : kernels);
    asked.backward(kernels);
    for (const testing::Owned* made : {&asked.out, &asked.log_sum, &asked.dq, &asked.dkv})
      digest.add(made->tensor);
  }
  return digest.end();
}

/// Sums over columns, rows and all elements.
std::string of_sums(const testing::Cpu& cpu, DType dtype) {
  using testing::Operand;
  const DType wide = testing::wide_of(dtype);
  Digest digest;
  for (const std::int64_t cols : {31, 2049, 5000}) {
    const Shape all{1, 9, cols};
    const Operand x = Operand::random(all, dtype, "x", 2), dy = Operand::random(all, dtype, "dy"),
                  gain = Operand::random({cols}, dtype, "gain"),
                  logits = Operand::random({9, cols}, wide, "logits", 3),
                  ids = Operand::tokens({0, 30, -1, 7, 7, 2, 0, 1, 5});
    Operand maximum({9}, wide), sums({9}, wide), of_target({9}, wide), total({9}, wide),
        dlogits({9, cols}, dtype);
    cpu->row_maximum({logits, cols, maximum});
    cpu->softmax_sums({logits, cols, 0, ids, maximum, sums, of_target, total});
    cpu->cross_entropy_backward({logits, cols, 0, ids, maximum, sums, 0.25, 0.1, cols, dlogits});
    for (const Operand* made : {&maximum, &sums, &of_target, &total, &dlogits}) digest.add(*made);
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      Operand y(all, dtype), statistics({9, 2}, wide), dx(all, dtype), dgain({1, cols}, wide),
          doffset({1, cols}, wide);
      cpu->norm({.kind = kind, .x = x, .gain = gain, .epsilon = 1e-5, .statistics = statistics, .y = y});
      cpu->norm_backward_input(
          {.kind = kind, .dy = dy, .x = x, .gain = gain, .statistics = statistics, .dx = dx});
      cpu->norm_backward_parameters(
          {.kind = kind, .dy = dy, .x = x, .statistics = statistics, .dgain = dgain, .doffset = doffset});
      for (const Operand* made : {&y, &statistics, &dx, &dgain, &doffset}) digest.add(*made);
    }
  }
  for (const std::int64_t rows : {129, 700}) {
    const Operand x = Operand::random({rows, 85}, dtype, "x", 2);
    Operand parts({pixel_chunks(rows), 2, 85}, wide), statistics({3, 85}, wide);
    cpu->batch_moments({x, parts});
    cpu->batch_statistics({parts, rows, 1e-5, statistics});
    digest.add(parts);
    digest.add(statistics);
  }
  const Shape samples{2, 40, 101};
  const Operand x = Operand::random(samples, dtype, "x"), dy = Operand::random(samples, dtype, "dy");
  Operand dw({7, 101}, wide);
  cpu->depthwise_backward_weight({dy, x, {}, {7, false}, dw});
  digest.add(dw);
  const std::int64_t count = 2 * statistics_chunk + 1001;
  Operand squares({3}, DType::f64);
  cpu->sum_squares({Operand::random({count}, dtype, "x"), squares});
  digest.add(squares);
  return digest.end();
}

/// A line for each family of kernels that this processor runs. The units for bf16 are their models.
std::vector<std::string> digests_here() {
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::string& of, const std::string& digest) {
    lines.push_back(fmt::format("{} {}: {}", what, of, digest));
  };
  for (const Isa isa : testing::instruction_sets()) {
    const testing::Cpu cpu(1, name_of(isa));
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::string of = fmt::format("in {} on {}", dtype, name_of(isa));
      const AttentionKernels& few = choose_attention_kernels(isa, dtype, true);
      add("products", of,
          of_products(choose_product_kernels(isa, dtype == DType::bf16), dtype == DType::bf16));
      add("attention", of, of_attention(choose_attention_kernels(isa, dtype), &few, dtype));
      add("sums", of, of_sums(cpu, dtype));
    }
    if (isa == Isa::baseline) continue;  // it has no models
    const std::string on = fmt::format("on {}", name_of(isa));
    add("products of pairs", on, of_products(MINDPIPE_PICK_MODEL(isa, pair_model_kernels), true));
    add("products of tiles", on, of_products(MINDPIPE_PICK_MODEL(isa, amx_model_kernels), true));
    add("attention by pairs", on,
        of_attention(MINDPIPE_PICK_MODEL(isa, pair_model_attention_kernels), nullptr, DType::bf16));
    if (isa == Isa::avx512)
      add("attention by tiles", on, of_attention(avx512::amx_model_attention_kernels, nullptr, DType::bf16));
  }
  return lines;
}

TEST(KernelsByShape, HaveTheBitsThatTheNameOfTheArithmeticCounts) {
  const std::set<std::string> golden = golden_lines("shape_digests.txt");
  for (const std::string& line : digests_here()) EXPECT_TRUE(golden.contains(line)) << line;
}

}  // namespace
}  // namespace mindpipe
