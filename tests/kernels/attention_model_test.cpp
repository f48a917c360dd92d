#include <gtest/gtest.h>

#include "kernels/attention_model.h"
#include "kernels/unit_models/unit_models.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Kernels of a unit, by the processor or over a model of it in plain C++.
struct Engine {
  std::string name;
  Chain chain;
  DType dtype;
  const AttentionKernels* kernels;
  std::string lacking;  ///< what this processor has not, "" where it has all
};
std::vector<Engine> engines() {
  std::vector<Engine> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    const std::string set = name_of(isa), lacking = processor_has(isa) ? "" : set;
    const Chain chain = isa == Isa::baseline ? Chain::separate : Chain::fused;
    const AttentionByType& kernels = MINDPIPE_PICK_KERNELS(isa, attention_kernels);
    all.push_back({"f32_" + set, chain, DType::f32, &kernels.of[1], lacking});
    all.push_back({"bf16_" + set, chain, DType::bf16, &kernels.of[2], lacking});
  }
  for (Isa isa : sets_with_models)
    all.push_back({std::string("pairs_model_") + name_of(isa), Chain::pairs, DType::bf16,
                   &MINDPIPE_PICK_MODEL(isa, pair_model_attention_kernels),
                   processor_has(isa) ? "" : name_of(isa)});
  all.push_back({"pairs", Chain::pairs, DType::bf16, &avx512::pair_attention_kernels,
                 processor_has(Isa::avx512_bf16) ? "" : "products of bf16 pairs"});
  all.push_back({"tiles_model", Chain::tiles, DType::bf16, &avx512::amx_model_attention_kernels,
                 processor_has(Isa::avx512) ? "" : "avx512"});
  all.push_back({"tiles", Chain::tiles, DType::bf16, &avx512::amx_attention_kernels,
                 processor_has(Isa::avx512_amx) ? "" : "AMX tiles"});
  return all;
}
void PrintTo(const Engine& engine, std::ostream* to) { *to << engine.name; }

class AttentionOf : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (!GetParam().lacking.empty()) GTEST_SKIP() << "this processor has no " << GetParam().lacking;
  }
  static void run(Asked& asked, int threads = 1) {
    asked.forward(*GetParam().kernels, threads);
    asked.backward(*GetParam().kernels, threads);
  }
};

/// Elements whose bits differ, those of the sign of zero among them.
int differing(const Owned& got, const std::vector<float>& want) {
  int count = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    count += std::bit_cast<std::uint32_t>(static_cast<float>(got[static_cast<std::int64_t>(i)])) !=
             std::bit_cast<std::uint32_t>(want[i]);
  return count;
}

TEST_P(AttentionOf, EveryElementIsThatOfTheModel) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Asked asked(c, GetParam().dtype);
    run(asked);
    const AttentionModel model(asked, GetParam().chain);
    EXPECT_EQ(differing(asked.out, model.out), 0) << "out";
    EXPECT_EQ(differing(asked.dq, model.dq), 0) << "dq";
    EXPECT_EQ(differing(asked.dkv, model.dkv), 0) << "dk and dv";
  }
}

TEST_P(AttentionOf, BitsDoNotDependOnThreads) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Asked one(c, GetParam().dtype), three(c, GetParam().dtype);
    run(one);
    run(three, 3);
    EXPECT_TRUE(same_bits(one.out, three.out) && same_bits(one.log_sum, three.log_sum) &&
                same_bits(one.dq, three.dq) && same_bits(one.dkv, three.dkv));
  }
}

TEST_P(AttentionOf, ANotANumberIsNotLost) {
  for (int operand = 0; operand < 3; ++operand) {
    Asked asked({.samples = 1, .queries = 33, .keys = 33, .heads = 1, .key_heads = 1, .width = 16},
                GetParam().dtype);
    if (operand == 0) asked.q.set(asked.q_at(0, 1, 0), std::nan(""));
    if (operand == 1) asked.kv.set(asked.k_at(0, 20, 0), std::nan(""));
    if (operand == 2) asked.kv.set(asked.k_at(0, 20, 1), std::nan(""));
    run(asked);
    EXPECT_TRUE(std::isnan(asked.out[asked.out_at(0, 1, 0)])) << "operand " << operand;
    if (operand < 2) {
      EXPECT_TRUE(std::isnan(asked.dq[asked.q_at(0, 1, 0)])) << "operand " << operand;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, AttentionOf, ::testing::ValuesIn(engines()),
                         [](const auto& engine) { return engine.param.name; });

}  // namespace
