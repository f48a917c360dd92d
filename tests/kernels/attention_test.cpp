#include "cpu/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace mindpipe;

namespace {

/// A tensor with memory of its own.
struct Owned {
  std::vector<std::byte> memory;
  Tensor tensor;

  Owned(const Shape& shape, DType dtype) : memory(static_cast<std::size_t>(shape.count()) * bytes_of(dtype)), tensor{memory.data(), shape, dtype} {}
  Owned(Owned&&) = default;

  double operator[](std::int64_t i) const {
    if (tensor.dtype == DType::f64) return tensor.as<double>()[i];
    if (tensor.dtype == DType::f32) return static_cast<double>(tensor.as<float>()[i]);
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[i]) << 16));
  }
  void set(std::int64_t i, double value) {
    if (tensor.dtype == DType::f64) tensor.as<double>()[i] = value;
    else if (tensor.dtype == DType::f32) tensor.as<float>()[i] = static_cast<float>(value);
    else tensor.as<std::uint16_t>()[i] = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(static_cast<float>(value)) + 0x8000u) >> 16);
  }
};

struct Case {
  const char* name = "";
  std::int64_t samples = 2, queries = 7, keys = 7, heads = 2, key_heads = 2, width = 8;
  bool causal = false;
  std::vector<std::int32_t> lengths = {};
  float dropout = 0;
  std::int64_t head_offset = 0, spare_rows = 0;
  float scale = 0.3f;
};

/// The question of a case with all its operands: q lies in a tensor of its own with a foreign head before it, k and v share one.
struct Asked {
  Case c;
  DType dtype;
  Owned q, kv, dout, log_sum, out, dq, dkv;
  AttentionQuestion question;
  Memory memory{Memory::Kind::host};
  AttentionScratch scratch{memory};

  Asked(const Case& given, DType type)
      : c(given), dtype(type), q({c.samples, c.queries + c.spare_rows, c.heads + 1, c.width}, type),
        kv({c.samples, c.keys + c.spare_rows, 2 * c.key_heads, c.width}, type), dout({c.samples, c.queries, c.heads, c.width}, type),
        log_sum({c.samples, c.heads, c.queries}, type == DType::f64 ? DType::f64 : DType::f32), out(dout.tensor.shape, type), dq(q.tensor.shape, type),
        dkv(kv.tensor.shape, type) {
    fill(q, "q");
    fill(kv, "kv");
    fill(dout, "dout");
    question.queries = c.queries;
    question.keys = c.keys;
    question.causal = c.causal;
    question.scale = c.scale;
    if (!c.lengths.empty()) question.key_lengths = {c.lengths.data(), {c.samples}, DType::i32};
    question.dropout = {c.dropout, {5, purpose_of("attention"), 3, 11}};
    question.head_offset = c.head_offset;
  }
  static void fill(Owned& t, const char* name) {
    const RandomStream stream{1, purpose_of(name), 0, 0};
    for (std::int64_t i = 0; i < t.tensor.count(); ++i) t.set(i, stream.normal(static_cast<std::uint64_t>(i)));
  }
  Heads query_heads() { return {q.tensor, 1, static_cast<int>(c.heads)}; }
  Heads k() { return {kv.tensor, 0, static_cast<int>(c.key_heads)}; }
  Heads v() { return {kv.tensor, static_cast<int>(c.key_heads), static_cast<int>(c.key_heads)}; }

  void forward(Isa isa, int threads = 1) { run_attention(isa, threads, scratch, question, query_heads(), k(), v(), log_sum.tensor, out.tensor); }
  void backward(Isa isa, int threads = 1) {
    Heads dk = k(), dv = v(), dqs = query_heads();
    dqs.data = dq.tensor;
    dk.data = dv.data = dkv.tensor;
    run_attention_backward(isa, threads, scratch, question, query_heads(), k(), v(), log_sum.tensor, out.tensor, dout.tensor, dqs, dk, dv);
  }
  std::int64_t q_at(std::int64_t s, std::int64_t i, std::int64_t h) const { return ((s * (c.queries + c.spare_rows) + i) * (c.heads + 1) + 1 + h) * c.width; }
  std::int64_t k_at(std::int64_t s, std::int64_t j, std::int64_t h) const { return ((s * (c.keys + c.spare_rows) + j) * 2 * c.key_heads + h) * c.width; }
  std::int64_t out_at(std::int64_t s, std::int64_t i, std::int64_t h) const { return ((s * c.queries + i) * c.heads + h) * c.width; }
};

/// The same in double, by the book.
struct Reference {
  std::vector<double> out, log_sum, dq, dkv;

  explicit Reference(const Asked& a)
      : out(a.out.tensor.count()), log_sum(a.log_sum.tensor.count()), dq(a.q.tensor.count()), dkv(a.kv.tensor.count()) {
    const Case& c = a.c;
    for (std::int64_t s = 0; s < c.samples; ++s)
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t i = 0; i < c.queries; ++i) row(a, s, h, i);
  }
  void row(const Asked& a, std::int64_t s, std::int64_t h, std::int64_t i) {
    const Case& c = a.c;
    const std::int64_t key_head = h * c.key_heads / c.heads;
    const std::int64_t q = a.q_at(s, i, h), o = a.out_at(s, i, h);
    std::vector<double> p(c.keys), keep(c.keys, 1.0), dp(c.keys);
    RandomStream stream = a.question.dropout.stream;
    stream.sample += static_cast<std::uint32_t>(s);
    double sum = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if ((c.causal && j > i + c.keys - c.queries) || (!c.lengths.empty() && j >= c.lengths[s])) continue;
      double dot = 0;
      for (std::int64_t e = 0; e < c.width; ++e) dot += a.q[q + e] * a.kv[a.k_at(s, j, key_head) + e];
      sum += p[j] = std::exp(static_cast<double>(c.scale) * dot);
      const auto element = static_cast<std::uint64_t>(((c.head_offset + h) * c.queries + i) * c.keys + j);
      if (c.dropout > 0) keep[j] = stream.word(element) >= static_cast<double>(c.dropout) * 0x1p32 ? 1 / (1 - static_cast<double>(c.dropout)) : 0;
    }
    if (sum == 0) return;
    log_sum[(s * c.heads + h) * c.queries + i] = std::log(sum);
    double mean = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      p[j] /= sum;
      const std::int64_t v = a.k_at(s, j, c.key_heads + key_head);
      for (std::int64_t e = 0; e < c.width; ++e) {
        out[o + e] += p[j] * keep[j] * a.kv[v + e];
        dp[j] += keep[j] * a.dout[o + e] * a.kv[v + e];
        dkv[v + e] += p[j] * keep[j] * a.dout[o + e];
      }
      mean += p[j] * dp[j];
    }
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const double ds = static_cast<double>(c.scale) * p[j] * (dp[j] - mean);
      const std::int64_t k = a.k_at(s, j, key_head);
      for (std::int64_t e = 0; e < c.width; ++e) {
        dq[q + e] += ds * a.kv[k + e];
        dkv[k + e] += ds * a.q[q + e];
      }
    }
  }
};

/// The largest difference, relative to the largest value (at least 1).
double difference(const Owned& got, const std::vector<double>& expected) {
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double d = std::abs(got[static_cast<std::int64_t>(i)] - expected[i]);
    worst = d <= worst ? worst : d;  // a NaN is taken
    if (std::isnan(d)) return d;
  }
  return worst / largest;
}

const Case cases[] = {
    {.name = "one query", .queries = 1, .keys = 1},
    {.name = "odd", .queries = 7, .keys = 7, .causal = true},
    {.name = "causal 33", .queries = 33, .keys = 33, .width = 24, .causal = true},
    {.name = "causal 130", .samples = 1, .queries = 130, .keys = 130, .heads = 1, .key_heads = 1, .width = 64, .causal = true},
    {.name = "causal 200", .samples = 1, .queries = 200, .keys = 200, .heads = 2, .key_heads = 1, .width = 16, .causal = true},
    {.name = "wide", .samples = 1, .queries = 65, .keys = 65, .heads = 1, .key_heads = 1, .width = 128, .scale = 0.1f},
    {.name = "width 80", .samples = 1, .queries = 33, .keys = 65, .heads = 1, .key_heads = 1, .width = 80, .scale = 0.1f},
    {.name = "cross", .queries = 33, .keys = 130, .heads = 3, .key_heads = 3, .width = 24},
    {.name = "cross, fewer keys", .queries = 130, .keys = 33, .width = 8},
    {.name = "padded", .samples = 4, .queries = 65, .keys = 65, .width = 24, .lengths = {65, 1, 0, 34}},
    {.name = "padded and causal", .samples = 3, .queries = 65, .keys = 130, .width = 8, .causal = true, .lengths = {130, 0, 3}},
    {.name = "rows before any key", .queries = 33, .keys = 7, .causal = true},
    {.name = "grouped", .queries = 33, .keys = 33, .heads = 6, .key_heads = 2, .width = 8, .causal = true},
    {.name = "dropout", .queries = 33, .keys = 36, .heads = 2, .key_heads = 1, .width = 24, .dropout = 0.3f, .head_offset = 3},
    {.name = "dropout, odd keys", .queries = 65, .keys = 65, .width = 8, .causal = true, .dropout = 0.1f},
    {.name = "dropout, 1 key beyond a tile", .samples = 1, .queries = 130, .keys = 131, .heads = 1, .key_heads = 1, .width = 64, .lengths = {129}, .dropout = 0.5f},
    {.name = "generation", .queries = 1, .keys = 197, .heads = 4, .key_heads = 2, .width = 64, .causal = true, .spare_rows = 9, .scale = 0.125f},
    {.name = "few", .samples = 3, .queries = 3, .keys = 77, .width = 24, .causal = true, .lengths = {77, 0, 75}},
    {.name = "four before any key", .queries = 4, .keys = 2, .width = 80, .causal = true, .scale = 0.1f},
    {.name = "short", .queries = 5, .keys = 300, .width = 16, .causal = true, .lengths = {300, 211}, .spare_rows = 3},
};

std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (processor_has(isa)) sets.push_back(isa);
  return sets;
}

void expect_near_the_reference(Asked& asked, Isa isa, double out_tolerance, double gradient_tolerance) {
  SCOPED_TRACE(std::string(asked.c.name) + ", " + name_of(asked.dtype) + ", " + name_of(isa));
  asked.forward(isa);
  asked.backward(isa);
  const Reference reference(asked);
  EXPECT_LE(difference(asked.out, reference.out), out_tolerance);
  EXPECT_LE(difference(asked.log_sum, reference.log_sum), asked.dtype == DType::f64 ? 1e-12 : 2e-6);
  EXPECT_LE(difference(asked.dq, reference.dq), gradient_tolerance);
  EXPECT_LE(difference(asked.dkv, reference.dkv), gradient_tolerance);
}

bool same_bits(const Owned& a, const Owned& b) { return a.memory == b.memory; }

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
  for (const Case& c : {Case{.name = "causal", .samples = 1, .queries = 9, .keys = 11, .heads = 4, .causal = true},
                        Case{.name = "padded with dropout", .queries = 5, .keys = 6, .key_heads = 1, .lengths = {4, 6}, .dropout = 0.25f, .head_offset = 1}}) {
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
        EXPECT_TRUE(same_bits(one.out, more.out) && same_bits(one.log_sum, more.log_sum) && same_bits(one.dq, more.dq) && same_bits(one.dkv, more.dkv));
      }
    }
}

/// Copies head `from` of one operand over head `to` of another.
void copy_head(const Owned& source, std::int64_t from, Owned& target, std::int64_t to) {
  const Shape &a = source.tensor.shape, &b = target.tensor.shape;
  const std::size_t bytes = static_cast<std::size_t>(a[3]) * bytes_of(source.tensor.dtype);
  for (std::int64_t row = 0; row < b[0] * b[1]; ++row)
    std::memcpy(target.tensor.as<std::byte>() + (row * b[2] + to) * bytes, source.tensor.as<std::byte>() + (row * a[2] + from) * bytes, bytes);
}
/// Whether head `i` of one operand has the bits of head `j` of another.
bool same_head(const Owned& a, std::int64_t i, const Owned& b, std::int64_t j) {
  Owned x({a.tensor.shape[0], a.tensor.shape[1], 1, a.tensor.shape[3]}, a.tensor.dtype), y(x.tensor.shape, a.tensor.dtype);
  copy_head(a, i, x, 0);
  copy_head(b, j, y, 0);
  return same_bits(x, y);
}

TEST(Attention, AShardOfHeadsAloneHasTheBitsOfTheWhole) {
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Case whole_case{.queries = 101, .keys = 130, .heads = 6, .key_heads = 3, .width = 24, .causal = true, .lengths = {130, 99}, .dropout = 0.2f, .head_offset = 4};
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
          EXPECT_TRUE(same_head(whole.out, 2 * shard + h, alone.out, h)) << name_of(isa) << " out of shard " << shard;
          EXPECT_TRUE(same_head(whole.dq, 1 + 2 * shard + h, alone.dq, 1 + h)) << name_of(isa) << " dq of shard " << shard;
        }
        EXPECT_TRUE(same_head(whole.dkv, shard, alone.dkv, 0)) << name_of(isa) << " dk of shard " << shard;
        EXPECT_TRUE(same_head(whole.dkv, 3 + shard, alone.dkv, 1)) << name_of(isa) << " dv of shard " << shard;
      }
    }
}

TEST(Attention, ASampleAloneHasTheBitsOfTheWhole) {
  const Case c{.samples = 3, .queries = 33, .keys = 65, .width = 16, .dropout = 0.2f};
  Asked whole(c, DType::f32), alone([&] { Case one = c; one.samples = 1; return one; }(), DType::f32);
  const Isa isa = instruction_sets().back();
  whole.forward(isa);
  whole.backward(isa);
  for (std::int64_t s = 0; s < c.samples; ++s) {
    std::memcpy(alone.q.memory.data(), whole.q.tensor.at(s).data, alone.q.memory.size());
    std::memcpy(alone.kv.memory.data(), whole.kv.tensor.at(s).data, alone.kv.memory.size());
    std::memcpy(alone.dout.memory.data(), whole.dout.tensor.at(s).data, alone.dout.memory.size());
    alone.question.dropout.stream.sample = whole.question.dropout.stream.sample + static_cast<std::uint32_t>(s);
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
      for (std::int64_t e = dirty.k_at(s, c.lengths[static_cast<std::size_t>(s)], 0); e < dirty.k_at(s + 1, 0, 0); ++e) dirty.kv.set(e, std::nan(""));
    for (Asked* asked : {&clean, &dirty}) {
      asked->forward(instruction_sets().back());
      asked->backward(instruction_sets().back());
    }
    EXPECT_TRUE(same_bits(clean.out, dirty.out) && same_bits(clean.dq, dirty.dq) && same_bits(clean.dkv, dirty.dkv));
  }
}

TEST(Attention, ANotANumberIsNotLost) {
  for (Isa isa : instruction_sets())
    for (std::int64_t queries : {2, 33})
      for (int operand = 0; operand < 3; ++operand) {
        Asked asked({.samples = 1, .queries = queries, .keys = 33, .heads = 1, .key_heads = 1, .width = 16}, DType::f32);
        if (operand == 0) asked.q.set(asked.q_at(0, 1, 0), std::nan(""));
        if (operand == 1) asked.kv.set(asked.k_at(0, 20, 0), std::nan(""));
        if (operand == 2) asked.kv.set(asked.k_at(0, 20, 1), std::nan(""));
        asked.forward(isa);
        EXPECT_TRUE(std::isnan(asked.out[asked.out_at(0, 1, 0)])) << name_of(isa) << ", " << queries << " queries, operand " << operand;
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
    EXPECT_NE(std::string(error.what()).find("3 query heads on 2 key and 2 value heads (equal groups are needed)"), std::string::npos) << error.what();
  }
}

}  // namespace
