#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/attention.h"
#include "operations/attention.h"

/// What tests of attention share: cases with all their operands, and the answers in double, by the book.
namespace mindpipe::testing {

/// A tensor with memory of its own.
struct Owned {
  std::vector<std::byte> memory;
  Tensor tensor;

  Owned(const Shape& shape, DType dtype)
      : memory(static_cast<std::size_t>(shape.count()) * bytes_of(dtype)),
        tensor{memory.data(), shape, dtype} {}
  Owned(Owned&&) = default;

  double operator[](std::int64_t i) const {
    if (tensor.dtype == DType::f64) return tensor.as<double>()[i];
    if (tensor.dtype == DType::f32) return static_cast<double>(tensor.as<float>()[i]);
    return static_cast<double>(
        std::bit_cast<float>(static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[i]) << 16));
  }
  void set(std::int64_t i, double value) {
    if (tensor.dtype == DType::f64) tensor.as<double>()[i] = value;
    else if (tensor.dtype == DType::f32) tensor.as<float>()[i] = static_cast<float>(value);
    else
      tensor.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(
          (std::bit_cast<std::uint32_t>(static_cast<float>(value)) + 0x8000u) >> 16);
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

/// The operands of a case: q lies in a tensor of its own with a foreign head before it,
/// k and v share one.
struct Asked {
  Case c;
  DType dtype;
  Owned q, kv, dout, log_sum, out, dq, dkv;
  AttentionParameters parameters;
  Memory memory{Memory::Kind::host};
  AttentionScratch scratch{memory};

  Asked(const Case& given, DType type)
      : c(given),
        dtype(type),
        q({c.samples, c.queries + c.spare_rows, c.heads + 1, c.width}, type),
        kv({c.samples, c.keys + c.spare_rows, 2 * c.key_heads, c.width}, type),
        dout({c.samples, c.queries, c.heads, c.width}, type),
        log_sum({c.samples, c.heads, c.queries}, type == DType::f64 ? DType::f64 : DType::f32),
        out(dout.tensor.shape, type),
        dq(q.tensor.shape, type),
        dkv(kv.tensor.shape, type) {
    fill(q, "q");
    fill(kv, "kv");
    fill(dout, "dout");
    parameters.queries = c.queries;
    parameters.keys = c.keys;
    parameters.causal = c.causal;
    parameters.scale = c.scale;
    if (!c.lengths.empty()) parameters.key_lengths = {c.lengths.data(), {c.samples}, DType::i32};
    parameters.dropout = {c.dropout, {5, purpose_of("attention"), 3, 11}};
    parameters.head_offset = c.head_offset;
  }
  static void fill(Owned& t, const char* name) {
    const RandomStream stream{1, purpose_of(name), 0, 0};
    for (std::int64_t i = 0; i < t.tensor.count(); ++i)
      t.set(i, stream.normal(static_cast<std::uint64_t>(i)));
  }
  /// The heads of `t` that `heads` names of its own tensor.
  static Heads in(Owned& t, Heads heads) {
    heads.data = t.tensor;
    return heads;
  }
  Heads query_heads() { return {q.tensor, 1, static_cast<int>(c.heads)}; }
  Heads k() { return {kv.tensor, 0, static_cast<int>(c.key_heads)}; }
  Heads v() { return {kv.tensor, static_cast<int>(c.key_heads), static_cast<int>(c.key_heads)}; }

  AttentionOperands operands() { return {parameters, query_heads(), k(), v(), log_sum.tensor, out.tensor}; }
  AttentionBackwardOperands backward_operands() {
    return {parameters,  query_heads(),         k(),          v(),         log_sum.tensor, out.tensor,
            dout.tensor, in(dq, query_heads()), in(dkv, k()), in(dkv, v())};
  }

  /// Fills the scratch with NaN, as a call before may have left it.
  void spoil_scratch(int threads, std::size_t bytes) {
    scratch.prepare(threads, bytes);
    std::memset(scratch.of_thread(0), 0xff, AttentionScratch::bytes_for(threads, bytes));
  }
  void forward(const AttentionKernels& kernels, int threads = 1) {
    const AttentionCall call = operands().checked();
    spoil_scratch(threads, kernels.forward_scratch(call));
    run_attention(kernels, threads, scratch, call);
  }
  void backward(const AttentionKernels& kernels, int threads = 1) {
    const AttentionCall call = backward_operands().checked();
    spoil_scratch(threads, kernels.backward_scratch(call));
    run_attention_backward(kernels, threads, scratch, call);
  }
  void forward(Isa isa, int threads = 1) {
    forward(choose_attention_kernels(isa, dtype, is_few(operands().checked())), threads);
  }
  void backward(Isa isa, int threads = 1) { backward(choose_attention_kernels(isa, dtype), threads); }
  /// What a kernel of both passes is called with; every element that they have to write begins as NaN.
  AttentionCall call_of_both() {
    for (Owned* written : {&out, &log_sum, &dq, &dkv})
      std::memset(written->memory.data(), 0xff, written->memory.size());
    return backward_operands().checked();
  }
  std::int64_t q_at(std::int64_t s, std::int64_t i, std::int64_t h) const {
    return ((s * (c.queries + c.spare_rows) + i) * (c.heads + 1) + 1 + h) * c.width;
  }
  std::int64_t k_at(std::int64_t s, std::int64_t j, std::int64_t h) const {
    return ((s * (c.keys + c.spare_rows) + j) * 2 * c.key_heads + h) * c.width;
  }
  std::int64_t out_at(std::int64_t s, std::int64_t i, std::int64_t h) const {
    return ((s * c.queries + i) * c.heads + h) * c.width;
  }
};

/// An attention and its gradients in double, by the book.
struct Reference {
  std::vector<double> out, log_sum, dq, dkv;

  explicit Reference(const Asked& a)
      : out(a.out.tensor.count()),
        log_sum(a.log_sum.tensor.count()),
        dq(a.q.tensor.count()),
        dkv(a.kv.tensor.count()) {
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
    RandomStream stream = a.parameters.dropout.stream;
    stream.sample += static_cast<std::uint32_t>(s);
    double sum = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if ((c.causal && j > i + c.keys - c.queries) || (!c.lengths.empty() && j >= c.lengths[s])) continue;
      double dot = 0;
      for (std::int64_t e = 0; e < c.width; ++e) dot += a.q[q + e] * a.kv[a.k_at(s, j, key_head) + e];
      sum += p[j] = std::exp(static_cast<double>(c.scale) * dot);
      const auto element = static_cast<std::uint64_t>(((c.head_offset + h) * c.queries + i) * c.keys + j);
      if (c.dropout > 0)
        keep[j] = stream.word(element) >= static_cast<double>(c.dropout) * 0x1p32
                      ? 1 / (1 - static_cast<double>(c.dropout))
                      : 0;
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
inline double difference(const Owned& got, const std::vector<double>& expected) {
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double d = std::abs(got[static_cast<std::int64_t>(i)] - expected[i]);
    worst = d <= worst ? worst : d;  // a NaN is taken
    if (std::isnan(d)) return d;
  }
  return worst / largest;
}

/// The largest difference relative to the largest value (at least 1), over `count` heads of the first rows.
inline double difference_of_heads(const Owned& got, const std::vector<double>& want, std::int64_t rows,
                                  int first, int count) {
  const Shape& shape = got.tensor.shape;
  double worst = 0, largest = 1;
  for (std::int64_t s = 0; s < shape[0]; ++s)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t e = first * shape[3]; e < (first + count) * shape[3]; ++e) {
        const std::int64_t at = (s * shape[1] + row) * shape[2] * shape[3] + e;
        const double d = std::abs(got[at] - want[static_cast<std::size_t>(at)]);
        if (std::isnan(d)) return d;
        worst = std::max(worst, d);
        largest = std::max(largest, std::abs(want[static_cast<std::size_t>(at)]));
      }
  return worst / largest;
}

inline const Case cases[] = {
    {.name = "one query", .queries = 1, .keys = 1},
    {.name = "odd", .queries = 7, .keys = 7, .causal = true},
    {.name = "causal 33", .queries = 33, .keys = 33, .width = 24, .causal = true},
    {.name = "causal 130",
     .samples = 1,
     .queries = 130,
     .keys = 130,
     .heads = 1,
     .key_heads = 1,
     .width = 64,
     .causal = true},
    {.name = "causal 200",
     .samples = 1,
     .queries = 200,
     .keys = 200,
     .heads = 2,
     .key_heads = 1,
     .width = 16,
     .causal = true},
    {.name = "wide",
     .samples = 1,
     .queries = 65,
     .keys = 65,
     .heads = 1,
     .key_heads = 1,
     .width = 128,
     .scale = 0.1f},
    {.name = "width 80",
     .samples = 1,
     .queries = 33,
     .keys = 65,
     .heads = 1,
     .key_heads = 1,
     .width = 80,
     .scale = 0.1f},
    {.name = "cross", .queries = 33, .keys = 130, .heads = 3, .key_heads = 3, .width = 24},
    {.name = "cross, fewer keys", .queries = 130, .keys = 33, .width = 8},
    {.name = "padded", .samples = 4, .queries = 65, .keys = 65, .width = 24, .lengths = {65, 1, 0, 34}},
    {.name = "padded and causal",
     .samples = 3,
     .queries = 65,
     .keys = 130,
     .width = 8,
     .causal = true,
     .lengths = {130, 0, 3}},
    {.name = "rows before any key", .queries = 33, .keys = 7, .causal = true},
    {.name = "grouped", .queries = 33, .keys = 33, .heads = 6, .key_heads = 2, .width = 8, .causal = true},
    {.name = "dropout",
     .queries = 33,
     .keys = 36,
     .heads = 2,
     .key_heads = 1,
     .width = 24,
     .dropout = 0.3f,
     .head_offset = 3},
    {.name = "dropout, odd keys", .queries = 65, .keys = 65, .width = 8, .causal = true, .dropout = 0.1f},
    {.name = "dropout, 1 key beyond a tile",
     .samples = 1,
     .queries = 130,
     .keys = 131,
     .heads = 1,
     .key_heads = 1,
     .width = 64,
     .lengths = {129},
     .dropout = 0.5f},
    {.name = "generation",
     .queries = 1,
     .keys = 197,
     .heads = 4,
     .key_heads = 2,
     .width = 64,
     .causal = true,
     .spare_rows = 9,
     .scale = 0.125f},
    {.name = "few",
     .samples = 3,
     .queries = 3,
     .keys = 77,
     .width = 24,
     .causal = true,
     .lengths = {77, 0, 75}},
    {.name = "four before any key", .queries = 4, .keys = 2, .width = 80, .causal = true, .scale = 0.1f},
    {.name = "short",
     .queries = 5,
     .keys = 300,
     .width = 16,
     .causal = true,
     .lengths = {300, 211},
     .spare_rows = 3},
};

inline bool same_bits(const Owned& a, const Owned& b) { return a.memory == b.memory; }

}  // namespace mindpipe::testing
