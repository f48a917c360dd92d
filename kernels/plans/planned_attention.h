#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/memory.h"
#include "core/tensor.h"
#include "operations/attention_views.h"

namespace mindpipe {

/// What a plan of a library may take of the device's memory, and what happens beyond it. Settings of a run:
/// which kernel computes depends on them.
struct AttentionLimit {
  std::size_t most = std::size_t{2} << 30;
  bool in_pieces = true;  ///< one after the other; else our own kernels, which take nothing
};

/// Into how many equal pieces an attention is cut, which a plan does one after the other. Heads that share
/// keys stay together. cuDNN wants sums of rows packed, so heads are cut only where a piece is one sample.
struct AttentionPieces {
  int of_samples = 1, of_heads = 1;
  int count() const { return of_samples * of_heads; }
  bool operator==(const AttentionPieces&) const = default;
};

/// An attention that a library of the device plans before it runs (cuDNN on a GPU): all but its addresses.
struct PlannedAttention {
  struct Strides {
    std::int64_t sample = 0, row = 0;
    auto operator<=>(const Strides&) const = default;
  };
  bool backward = false, causal = false;
  bool padded = false;  ///< samples' lengths are told to the plan, be they unequal or all alike
  std::int64_t samples = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
  double scale = 1;
  Strides q, k, v, out, dout, dq, dk, dv;
  auto operator<=>(const PlannedAttention&) const = default;

  PlannedAttention() = default;
  /// The first of the pieces; the others differ in addresses only.
  PlannedAttention(const AttentionCall& call, bool backward, const AttentionPieces& pieces = {});
  /// Two i32 [samples] in front of the plan's own memory where it is told lengths: how many queries each
  /// sample has, and how many keys where the call does not say it.
  std::size_t lengths_bytes() const { return padded ? 2 * one_length_bytes() : 0; }
  std::size_t one_length_bytes() const {
    return aligned(static_cast<std::size_t>(samples) * sizeof(std::int32_t));
  }
  /// The working memory of its plan by formula, with the lengths, a function of the logical shape. A
  /// deterministic backward keeps the gradient of all probabilities, a sum of each row, and where heads share
  /// keys the gradients of all heads' keys and values before they are added. Rows and columns are whole tiles
  /// of 128; cuDNN also has tiles of 64, and takes less then. A KiB is for anything else.
  std::size_t formula_bytes() const;
  /// "backward of 1 sample, 32 heads on 8, 8192 queries, 8192 keys, width 128, causal"
  std::string text() const;
};

/// Which attention is planned, a pure function of the question; what is planned the library may still refuse,
/// as a function of question, version and GPU.
///   bf16; no dropout, whose mask is our function; heads of 8, 16, .. 128; at least two queries and two keys;
///   a causal mask begins in the upper left corner (as many queries as keys), or ends in the lower right one,
///   and then there is no padding, since cuDNN would let it end at each sample's length.
bool is_planned(const AttentionCall& call, DType dtype);

/// One of the pieces, by number, of a call whose heads are of `dtype` and whose sums of rows are f32.
AttentionCall piece_of(const AttentionCall& call, const AttentionPieces& pieces, int number, DType dtype);

/// The fewest pieces whose plan stays below the limit by formula: of samples, and if one sample alone takes
/// more, of heads. None: no pieces do, and our own kernels run. A function of the logical shape and of
/// settings, so the same on every layout.
std::optional<AttentionPieces> pieces_of(const AttentionCall& call, bool backward,
                                         const AttentionLimit& limit);

}  // namespace mindpipe
