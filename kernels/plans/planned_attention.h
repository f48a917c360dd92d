#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "core/memory.h"
#include "core/tensor.h"
#include "operations/attention_views.h"

namespace mindpipe {

/// An attention that a library of the device plans before it runs (cuDNN on a GPU): all but its addresses.
struct PlannedAttention {
  struct Strides {
    std::int64_t sample = 0, row = 0;
    auto operator<=>(const Strides&) const = default;
  };
  bool backward = false, causal = false, padded = false;
  std::int64_t samples = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
  double scale = 1;
  Strides q, k, v, out, dout, dq, dk, dv;
  auto operator<=>(const PlannedAttention&) const = default;

  PlannedAttention() = default;
  PlannedAttention(const AttentionCall& call, bool backward);
  /// i32 [samples] in front of the plan's own memory where keys are padded: how many queries each sample has.
  std::size_t lengths_bytes() const {
    return padded ? aligned(static_cast<std::size_t>(samples) * sizeof(std::int32_t)) : 0;
  }
  /// The most that its plan may take, with the lengths; a plan that wants more is not used. On Hopper the
  /// deterministic backward keeps the gradient of all probabilities, and sums of each row.
  std::size_t most_bytes() const;
};

/// Which attention is planned, a pure function of the question; what is planned the library may still refuse,
/// as a function of question, version and GPU.
///   bf16; no dropout, whose mask is our function; heads of 8, 16, .. 128; at least two queries and two keys;
///   a causal mask begins in the upper left corner (as many queries as keys), or ends in the lower right one,
///   and then there is no padding, since cuDNN would let it end at each sample's length; where every query
///   sees every key there are whole tiles of them: cuDNN's backward can take keys of half a tile behind the
///   last one for real where scores are far below zero (NVIDIA/cudnn-frontend, pull request 628).
bool is_planned(const AttentionCall& call, DType dtype);

}  // namespace mindpipe
