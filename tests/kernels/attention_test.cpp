#include <gtest/gtest.h>

#include "kernels/attention_cases.h"
#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

void expect_near_the_reference(Asked& asked, Isa isa, double out_tolerance, double gradient_tolerance) {
  SCOPED_TRACE(fmt::format("{}, {}, {}", asked.c.name, asked.dtype, name_of(isa)));
  asked.forward(isa);
  asked.backward(isa);
  const Reference reference(asked);
  EXPECT_LE(difference(asked.out, reference.out), out_tolerance);
  EXPECT_LE(difference(asked.log_sum, reference.log_sum), asked.dtype == DType::f64 ? 1e-12 : 2e-6);
  EXPECT_LE(difference(asked.dq, reference.dq), gradient_tolerance);
  EXPECT_LE(difference(asked.dkv, reference.dkv), gradient_tolerance);
}

/// dout . out: the loss whose gradient is dout
double loss(Asked& asked) {
  asked.forward(instruction_sets().back());
  double sum = 0;
  for (std::int64_t i = 0; i < asked.out.tensor.count(); ++i) sum += asked.out[i] * asked.dout[i];
  return sum;
}

double central_difference(Asked& asked, Owned& operand, std::int64_t i) {
  const double step = 1e-5, before = operand[i];
  operand.set(i, before + step);
  const double above = loss(asked);
  operand.set(i, before - step);
  const double below = loss(asked);
  operand.set(i, before);
  return (above - below) / (2 * step);
}

TEST(Attention, AgreesWithTheReferenceInF64) {
  for (const Case& c : cases) {
    Asked asked(c, DType::f64);
    expect_near_the_reference(asked, instruction_sets().back(), 1e-12, 1e-12);
  }
}

TEST(Attention, AgreesWithTheReferenceInF32OnEveryInstructionSet) {
  for (const Case& c : cases)
    for (Isa isa : instruction_sets()) {
      Asked asked(c, DType::f32);
      expect_near_the_reference(asked, isa, 2e-6, 4e-6);
    }
}

TEST(Attention, AgreesWithTheReferenceInBf16) {
  for (const Case& c : cases)
    for (Isa isa : instruction_sets()) {
      Asked asked(c, DType::bf16);
      expect_near_the_reference(asked, isa, 0.004, 0.008);
    }
}

TEST(Attention, GradientsAreCentralDifferences) {
  for (const Case& c :
       {Case{.name = "causal", .samples = 1, .queries = 9, .keys = 11, .heads = 4, .causal = true},
        Case{.name = "padded with dropout",
        .queries = 5,
        .keys = 6,
        .key_heads = 1,
        .lengths = {4, 6},
        .dropout = 0.25f,
        .head_offset = 1}}) {
    SCOPED_TRACE(c.name);
    Asked asked(c, DType::f64);
    loss(asked);
    asked.backward(instruction_sets().back());
    for (std::int64_t i = 0; i < asked.q.tensor.count(); i += 7) {
      const double expected = central_difference(asked, asked.q, i);
      ASSERT_NEAR(asked.dq[i], expected, 1e-7 * std::max(1.0, std::abs(expected))) << "q " << i;
    }
    for (std::int64_t i = 0; i < asked.kv.tensor.count(); i += 5) {
      const double expected = central_difference(asked, asked.kv, i);
      ASSERT_NEAR(asked.dkv[i], expected, 1e-7 * std::max(1.0, std::abs(expected))) << "kv " << i;
    }
  }
}

TEST(Attention, BitsDoNotDependOnThreads) {
  for (const Case& c : cases)
    for (DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(c.name);
      const Isa isa = instruction_sets().back();
      Asked one(c, dtype);
      one.forward(isa, 1);
      one.backward(isa, 1);
      for (int threads : {2, 3}) {
        Asked more(c, dtype);
        more.forward(isa, threads);
        more.backward(isa, threads);
        EXPECT_TRUE(same_bits(one.out, more.out) && same_bits(one.log_sum, more.log_sum) &&
                    same_bits(one.dq, more.dq) && same_bits(one.dkv, more.dkv));
      }
    }
}

/// Copies head `from` of one operand over head `to` of another.
void copy_head(const Owned& source, std::int64_t from, Owned& target, std::int64_t to) {
  const Shape &a = source.tensor.shape, &b = target.tensor.shape;
  const std::size_t bytes = static_cast<std::size_t>(a[3]) * bytes_of(source.tensor.dtype);
  for (std::int64_t row = 0; row < b[0] * b[1]; ++row)
    std::memcpy(target.tensor.as<std::byte>() + (row * b[2] + to) * bytes,
                source.tensor.as<std::byte>() + (row * a[2] + from) * bytes, bytes);
}
/// Whether head `i` of one operand has the bits of head `j` of another.
bool same_head(const Owned& a, std::int64_t i, const Owned& b, std::int64_t j) {
  Owned x({a.tensor.shape[0], a.tensor.shape[1], 1, a.tensor.shape[3]}, a.tensor.dtype),
      y(x.tensor.shape, a.tensor.dtype);
  copy_head(a, i, x, 0);
  copy_head(b, j, y, 0);
  return same_bits(x, y);
}

TEST(Attention, AShardOfHeadsAloneHasTheBitsOfTheWhole) {
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Case whole_case{.queries = 101,
                            .keys = 130,
                            .heads = 6,
                            .key_heads = 3,
                            .width = 24,
                            .causal = true,
                            .lengths = {130, 99},
                            .dropout = 0.2f,
                            .head_offset = 4};
      Asked whole(whole_case, dtype);
      whole.forward(isa, 2);
      whole.backward(isa, 2);
      for (std::int64_t shard = 0; shard < 3; ++shard) {
        Case part = whole_case;
        part.heads = 2;
        part.key_heads = 1;
        part.head_offset = 4 + 2 * shard;
        Asked alone(part, dtype);
        for (int h = 0; h < 2; ++h) {
          copy_head(whole.q, 1 + 2 * shard + h, alone.q, 1 + h);
          copy_head(whole.dout, 2 * shard + h, alone.dout, h);
        }
        copy_head(whole.kv, shard, alone.kv, 0);
        copy_head(whole.kv, 3 + shard, alone.kv, 1);
        alone.forward(isa);
        alone.backward(isa);
        for (int h = 0; h < 2; ++h) {
          EXPECT_TRUE(same_head(whole.out, 2 * shard + h, alone.out, h))
              << name_of(isa) << " out of shard " << shard;
          EXPECT_TRUE(same_head(whole.dq, 1 + 2 * shard + h, alone.dq, 1 + h))
              << name_of(isa) << " dq of shard " << shard;
        }
        EXPECT_TRUE(same_head(whole.dkv, shard, alone.dkv, 0)) << name_of(isa) << " dk of shard " << shard;
        EXPECT_TRUE(same_head(whole.dkv, 3 + shard, alone.dkv, 1))
            << name_of(isa) << " dv of shard " << shard;
      }
    }
}

TEST(Attention, ASampleAloneHasTheBitsOfTheWhole) {
  const Case c{.samples = 3, .queries = 33, .keys = 65, .width = 16, .dropout = 0.2f};
  Asked whole(c, DType::f32), alone(
                                  [&] {
                                    Case one = c;
                                    one.samples = 1;
                                    return one;
                                  }(),
                                  DType::f32);
  const Isa isa = instruction_sets().back();
  whole.forward(isa);
  whole.backward(isa);
  for (std::int64_t s = 0; s < c.samples; ++s) {
    std::memcpy(alone.q.memory.data(), whole.q.tensor.at(s).data, alone.q.memory.size());
    std::memcpy(alone.kv.memory.data(), whole.kv.tensor.at(s).data, alone.kv.memory.size());
    std::memcpy(alone.dout.memory.data(), whole.dout.tensor.at(s).data, alone.dout.memory.size());
    alone.parameters.dropout.stream.sample =
        whole.parameters.dropout.stream.sample + static_cast<std::uint32_t>(s);
    alone.forward(isa);
    alone.backward(isa);
    EXPECT_EQ(std::memcmp(alone.out.memory.data(), whole.out.tensor.at(s).data, alone.out.memory.size()), 0);
    EXPECT_EQ(std::memcmp(alone.dq.memory.data(), whole.dq.tensor.at(s).data, alone.dq.memory.size()), 0);
    EXPECT_EQ(std::memcmp(alone.dkv.memory.data(), whole.dkv.tensor.at(s).data, alone.dkv.memory.size()), 0);
  }
}

TEST(Attention, KeysBeyondTheLengthMayHoldAnything) {
  const Case c{.queries = 33, .keys = 130, .width = 24, .lengths = {70, 0}, .spare_rows = 5};
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    Asked clean(c, dtype), dirty(c, dtype);
    for (std::int64_t s = 0; s < c.samples; ++s)
      for (std::int64_t e = dirty.k_at(s, c.lengths[static_cast<std::size_t>(s)], 0);
           e < dirty.k_at(s + 1, 0, 0); ++e)
        dirty.kv.set(e, std::nan(""));
    for (Asked* asked : {&clean, &dirty}) {
      asked->forward(instruction_sets().back());
      asked->backward(instruction_sets().back());
    }
    EXPECT_TRUE(same_bits(clean.out, dirty.out) && same_bits(clean.dq, dirty.dq) &&
                same_bits(clean.dkv, dirty.dkv));
  }
}

TEST(Attention, ANotANumberIsNotLost) {
  for (Isa isa : instruction_sets())
    for (std::int64_t queries : {2, 33})
      for (int operand = 0; operand < 3; ++operand) {
        Asked asked({.samples = 1, .queries = queries, .keys = 33, .heads = 1, .key_heads = 1, .width = 16},
                    DType::f32);
        if (operand == 0) asked.q.set(asked.q_at(0, 1, 0), std::nan(""));
        if (operand == 1) asked.kv.set(asked.k_at(0, 20, 0), std::nan(""));
        if (operand == 2) asked.kv.set(asked.k_at(0, 20, 1), std::nan(""));
        asked.forward(isa);
        EXPECT_TRUE(std::isnan(asked.out[asked.out_at(0, 1, 0)]))
            << name_of(isa) << ", " << queries << " queries, operand " << operand;
      }
}

TEST(Attention, ARowWithoutKeysIsZeroAndHasNoGradient) {
  Asked asked({.samples = 2, .queries = 33, .keys = 33, .width = 16, .lengths = {0, 33}}, DType::f32);
  const Isa isa = instruction_sets().back();
  asked.forward(isa);
  asked.backward(isa);
  for (std::int64_t i = 0; i < asked.out.tensor.count() / 2; ++i) ASSERT_EQ(asked.out[i], 0);
  for (std::int64_t i = 0; i < asked.log_sum.tensor.count() / 2; ++i) ASSERT_EQ(asked.log_sum[i], 0);
  for (std::int64_t i = 0; i < asked.dq.tensor.count() / 2; ++i) ASSERT_EQ(asked.dq[i], 0);
  for (std::int64_t i = 0; i < asked.dkv.tensor.count() / 2; ++i) ASSERT_EQ(asked.dkv[i], 0);
}

TEST(Attention, UnequalGroupsAreRefused) {
  Asked asked({.heads = 3, .key_heads = 2}, DType::f32);
  try {
    asked.forward(Isa::baseline);
    FAIL() << "3 query heads on 2 key heads were accepted";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("3 query heads on 2 key and 2 value heads (equal groups are needed)"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
