#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "plans/planned_attention.h"

namespace mindpipe {

/// The graph that a library is asked to plan for an attention, as plain data: who plans it builds it from
/// this alone.
struct AttentionGraph {
  enum Id : std::int64_t { q = 1, k, v, out, log_sum, dout, dq, dk, dv, query_lengths, key_lengths };
  enum class Type : std::uint8_t { bf16, f32, i32 };
  /// Where the causal mask's diagonal lies: it begins in the upper left corner of the scores, or ends in the
  /// lower right one.
  enum class Diagonal : std::uint8_t { none, upper_left, lower_right };
  /// Extents and strides are those of samples, heads, rows, width, whatever the order in memory.
  struct Tensor {
    Id id = q;
    Type type = Type::bf16;
    std::array<std::int64_t, 4> extents{}, strides{};
    bool is_output = false;
    bool operator==(const Tensor&) const = default;
  };

  bool backward = false, padded = false;
  bool deterministic = false;  ///< backward: sums in an order that no timing changes
  Diagonal diagonal = Diagonal::none;
  float scale = 1;
  std::vector<Tensor> tensors;

  Tensor& at(Id id);
  const Tensor& at(Id id) const { return const_cast<AttentionGraph*>(this)->at(id); }
};

AttentionGraph graph_of(const PlannedAttention& question);

}  // namespace mindpipe
