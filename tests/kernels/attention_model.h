#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention_cases.h"

/// The arithmetic of attention on the processor, element by element: what is summed in which order, what is
/// rounded where. The kernels are compared with it bit for bit.
namespace mindpipe::testing {

/// How a unit adds products up: one multiply-add after the other, rounded twice or once; pairs of neighbours,
/// the second first; or 32 at a time, the even and the odd ones in chains of their own.
enum class Chain { separate, fused, pairs, tiles };

class AttentionModel {
 public:
  std::vector<float> out, dq, dkv;

  /// `a` has been run forward: its log_sum is read, since logarithms are not what is compared here.
  AttentionModel(const Asked& asked, Chain chain)
      : out(asked.out.tensor.count()),
        dq(asked.dq.tensor.count()),
        dkv(asked.dkv.tensor.count()),
        a_(asked),
        c_(asked.c),
        chain_(chain),
        scale_(static_cast<float>(static_cast<double>(c_.scale))),
        log2_scale_(scale_ * 1.44269504f) {
    std::vector<float> sums(dkv.size());
    for (std::int64_t s = 0; s < c_.samples; ++s)
      for (std::int64_t h = 0; h < c_.heads; ++h) {
        for (std::int64_t i = 0; i < c_.queries; ++i) forward(s, h, i);
        backward(s, h, sums);
      }
    for (std::int64_t s = 0; s < c_.samples; ++s)
      for (std::int64_t j = 0; j < c_.keys; ++j)
        for (std::int64_t h = 0; h < 2 * c_.key_heads; ++h)
          for (std::int64_t e = 0; e < c_.width; ++e) {
            const std::int64_t at = a_.k_at(s, j, h) + e;
            dkv[at] = stored(h < c_.key_heads ? sums[at] * scale_ : sums[at]);
          }
  }

 private:
  static float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
  bool flushes() const { return chain_ == Chain::pairs || chain_ == Chain::tiles; }
  float mad(float x, float y, float z) const {
    return chain_ == Chain::separate ? x * y + z : std::fma(x, y, z);
  }
  float rounded(float x) const {
    if (a_.dtype == DType::f32) return x;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
  }
  /// A number as a factor of a product.
  float factor(float x) const { return rounded(flushes() ? flushed(x) : x); }
  /// A number as a result in memory.
  float stored(float x) const { return rounded(chain_ == Chain::tiles ? flushed(x) : x); }

  /// sum + x[0] y[0] + x[1] y[1] + ...
  template <class X, class Y>
  float sum_of(float sum, std::int64_t count, const X& x, const Y& y) const {
    if (chain_ == Chain::tiles) {
      for (std::int64_t first = 0; first < count; first += 32) {
        float part[2] = {0, 0};
        for (std::int64_t i = first; i < count && i < first + 32; ++i)
          part[i % 2] = flushed(std::fma(flushed(x(i)), flushed(y(i)), part[i % 2]));
        sum = flushed(flushed(sum) + flushed(part[0] + part[1]));
      }
      return sum;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (chain_ != Chain::pairs) {
        sum = mad(x(i), y(i), sum);
        continue;
      }
      const std::int64_t at = i % 2 == 1 ? i - 1 : i + 1 < count ? i + 1 : i;
      sum = flushed(std::fma(flushed(x(at)), flushed(y(at)), flushed(sum)));
    }
    return sum;
  }

  float power_of_2(float x) const {
    if (x < -126) return 0;
    const float n = std::nearbyint(x), r = x - n;
    float p = 0.00132647273f;
    for (float next : {0.00967151299f, 0.0555073358f, 0.240222424f, 0.693147004f, 1.0f}) p = mad(p, r, next);
    return std::ldexp(p, static_cast<int>(n));
  }

  std::int64_t seen(std::int64_t s, std::int64_t i) const {
    const std::int64_t length = c_.lengths.empty() ? c_.keys : c_.lengths[static_cast<std::size_t>(s)];
    return c_.causal ? std::clamp<std::int64_t>(i + c_.keys - c_.queries + 1, 0, length) : length;
  }
  std::int64_t key_head(std::int64_t h) const { return h * c_.key_heads / c_.heads; }
  float score(std::int64_t s, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t q = a_.q_at(s, i, h), k = a_.k_at(s, j, key_head(h));
    return sum_of(
        0, c_.width, [&](std::int64_t e) { return static_cast<float>(a_.kv[k + e]); },
        [&](std::int64_t e) { return static_cast<float>(a_.q[q + e]); });
  }
  float kept(std::int64_t s, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (c_.dropout == 0) return 1;
    RandomStream stream = a_.parameters.dropout.stream;
    stream.sample += static_cast<std::uint32_t>(s);
    const auto element = static_cast<std::uint64_t>(((c_.head_offset + h) * c_.queries + i) * c_.keys + j);
    return stream.word(element) >= static_cast<double>(c_.dropout) * 0x1p32
               ? static_cast<float>(1 / (1 - static_cast<double>(c_.dropout)))
               : 0.0f;
  }

  /// The softmax goes over blocks of keys: sums of the blocks before shrink as the maximum rises.
  void forward(std::int64_t s, std::int64_t h, std::int64_t i) {
    const std::int64_t count = seen(s, i), block = chain_ == Chain::tiles ? 128 : 96;
    float maximum = -1e30f, sum = 0;
    std::vector<float> sums(c_.width);
    for (std::int64_t first = 0; first < count; first += block) {
      const std::int64_t keys = std::min(block, count - first);
      std::vector<float> p(keys);
      const float before = maximum;
      for (std::int64_t j = 0; j < keys; ++j) maximum = std::max(maximum, p[j] = score(s, h, i, first + j));
      const float shrink = power_of_2((before - maximum) * log2_scale_), offset = -(maximum * log2_scale_);
      float total = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        total += p[j] = power_of_2(mad(p[j], log2_scale_, offset));
        p[j] = factor(p[j] * kept(s, h, i, first + j));
      }
      sum = mad(sum, shrink, total);
      for (std::int64_t e = 0; e < c_.width; ++e)
        sums[e] = sum_of(
            sums[e] * shrink, keys, [&](std::int64_t j) { return p[j]; },
            [&](std::int64_t j) {
              return static_cast<float>(a_.kv[a_.k_at(s, first + j, c_.key_heads + key_head(h)) + e]);
            });
    }
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (std::int64_t e = 0; e < c_.width; ++e) out[a_.out_at(s, i, h) + e] = stored(sums[e] * inverse);
  }

  /// dout . out of a row: sixteen chains, then by halves.
  float delta(std::int64_t row) const {
    float chains[16] = {};
    for (std::int64_t e = 0; e < c_.width; ++e)
      chains[e % 16] =
          mad(static_cast<float>(a_.dout[row + e]), static_cast<float>(a_.out[row + e]), chains[e % 16]);
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) chains[i] += chains[i + half];
    return chains[0];
  }

  void backward(std::int64_t s, std::int64_t h, std::vector<float>& sums) {
    std::vector<std::vector<float>> p(c_.queries, std::vector<float>(c_.keys)), ds = p;
    const std::int64_t of_values = c_.key_heads + key_head(h);
    for (std::int64_t i = 0; i < c_.queries; ++i) {
      const std::int64_t row = a_.out_at(s, i, h);
      const float log_sum = static_cast<float>(a_.log_sum[(s * c_.heads + h) * c_.queries + i]),
                  offset = -(log_sum * 1.44269504f), mean = delta(row);
      for (std::int64_t j = 0; j < seen(s, i); ++j) {
        const std::int64_t v = a_.k_at(s, j, of_values);
        const float dp = sum_of(
            0, c_.width, [&](std::int64_t e) { return static_cast<float>(a_.kv[v + e]); },
            [&](std::int64_t e) { return static_cast<float>(a_.dout[row + e]); });
        const float probability = power_of_2(mad(score(s, h, i, j), log2_scale_, offset)),
                    keep = kept(s, h, i, j);
        p[i][j] = factor(probability * keep);
        ds[i][j] = factor(probability * (dp * keep - mean));
      }
      for (std::int64_t e = 0; e < c_.width; ++e)
        dq[a_.q_at(s, i, h) + e] =
            stored(scale_ * sum_of(
                                0, seen(s, i), [&](std::int64_t j) { return ds[i][j]; },
                                [&](std::int64_t j) {
                                  return static_cast<float>(a_.kv[a_.k_at(s, j, key_head(h)) + e]);
                                }));
    }
    for (std::int64_t j = 0; j < c_.keys; ++j)
      for (std::int64_t e = 0; e < c_.width; ++e) {
        float &dk = sums[a_.k_at(s, j, key_head(h)) + e], &dv = sums[a_.k_at(s, j, of_values) + e];
        dv = sum_of(
            dv, c_.queries, [&](std::int64_t i) { return p[i][j]; },
            [&](std::int64_t i) { return static_cast<float>(a_.dout[a_.out_at(s, i, h) + e]); });
        dk = sum_of(
            dk, c_.queries, [&](std::int64_t i) { return ds[i][j]; },
            [&](std::int64_t i) { return static_cast<float>(a_.q[a_.q_at(s, i, h) + e]); });
      }
  }

  const Asked& a_;
  const Case& c_;
  const Chain chain_;
  const float scale_, log2_scale_;
};

}  // namespace mindpipe::testing
