#include "plans/planned_attention.h"

#include <fmt/format.h>

namespace mindpipe {
namespace {

constexpr std::int64_t tile = 128;

std::int64_t whole_tiles(std::int64_t rows) { return (rows + tile - 1) / tile * tile; }

/// Keys of which the last tile is cut short, each seen by every query. cuDNN's backward can take what lies
/// behind them for real where scores are far below zero (NVIDIA/cudnn-frontend, pull request 628), so it is
/// told how many there are.
bool ends_within_a_tile(const AttentionCall& c) { return !c.causal && c.keys % tile != 0; }

PlannedAttention::Strides strides_of(const HeadsView& view) { return {view.sample, view.row}; }

}  // namespace

PlannedAttention::PlannedAttention(const AttentionCall& c, bool is_backward, const AttentionPieces& pieces)
    : backward(is_backward),
      causal(c.causal),
      padded(c.key_lengths != nullptr || ends_within_a_tile(c)),
      samples(c.samples / pieces.of_samples),
      query_heads(c.query_heads / pieces.of_heads),
      key_heads(c.key_heads / pieces.of_heads),
      queries(c.queries),
      keys(c.keys),
      width(c.width),
      scale(c.scale),
      q(strides_of(c.q)),
      k(strides_of(c.k)),
      v(strides_of(c.v)),
      out(strides_of(c.out)),
      dout(strides_of(c.dout)),
      dq(strides_of(c.dq)),
      dk(strides_of(c.dk)),
      dv(strides_of(c.dv)) {}

std::size_t PlannedAttention::formula_bytes() const {
  constexpr std::size_t anything_else = 1024;
  if (!backward) return lengths_bytes() + anything_else;
  constexpr std::int64_t bf16 = 2, f32 = 4;
  const std::int64_t heads = samples * query_heads, rows = whole_tiles(queries), columns = whole_tiles(keys),
                     of_probabilities = heads * rows * columns * bf16, of_sums = heads * rows * f32,
                     of_shared_keys = query_heads == key_heads ? 0 : 2 * heads * keys * width * bf16;
  return lengths_bytes() + anything_else +
         static_cast<std::size_t>(of_probabilities + of_sums + of_shared_keys);
}

std::string PlannedAttention::text() const {
  const auto many = [](std::int64_t count, const char* name) {
    return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
  };
  return fmt::format("{} of {}, {} on {}, {} queries, {} keys, width {}{}{}",
                     backward ? "backward" : "forward", many(samples, "sample"), many(query_heads, "head"),
                     key_heads, queries, keys, width, causal ? ", causal" : "", padded ? ", padded" : "");
}

bool is_planned(const AttentionCall& call, DType dtype) {
  if (dtype != DType::bf16 || call.threshold != 0 || call.width % 8 != 0 || call.width > 128 ||
      call.queries < 2 || call.keys < 2)
    return false;
  if (!call.causal || call.queries == call.keys) return true;
  return call.queries < call.keys && call.key_lengths == nullptr;
}

AttentionCall piece_of(const AttentionCall& call, const AttentionPieces& pieces, int number, DType dtype) {
  AttentionCall piece = call;
  piece.samples /= pieces.of_samples;
  piece.query_heads /= pieces.of_heads;
  piece.key_heads /= pieces.of_heads;
  const std::int64_t sample = number / pieces.of_heads * piece.samples,
                     query_head = number % pieces.of_heads * piece.query_heads,
                     key_head = number % pieces.of_heads * piece.key_heads;
  const auto move_to = [&](HeadsView& view, std::int64_t head) {
    const auto elements = static_cast<std::size_t>(sample * view.sample + head * call.width);
    if (view.data != nullptr) view.data = static_cast<std::byte*>(view.data) + elements * bytes_of(dtype);
  };
  for (HeadsView* view : {&piece.q, &piece.out, &piece.dout, &piece.dq}) move_to(*view, query_head);
  for (HeadsView* view : {&piece.k, &piece.v, &piece.dk, &piece.dv}) move_to(*view, key_head);
  piece.log_sum = static_cast<float*>(call.log_sum) + (sample * call.query_heads + query_head) * call.queries;
  if (call.key_lengths != nullptr) piece.key_lengths = call.key_lengths + sample;
  return piece;
}

std::optional<AttentionPieces> pieces_of(const AttentionCall& call, bool backward,
                                         const AttentionLimit& limit) {
  const auto fits = [&](const AttentionPieces& pieces) {
    return PlannedAttention(call, backward, pieces).formula_bytes() <= limit.most;
  };
  if (fits({})) return AttentionPieces{};
  if (!limit.in_pieces) return std::nullopt;
  for (int of_samples = 2; of_samples <= call.samples; ++of_samples)
    if (call.samples % of_samples == 0 && fits({of_samples, 1})) return AttentionPieces{of_samples, 1};
  for (int of_heads = 2; of_heads <= call.key_heads; ++of_heads)
    if (const AttentionPieces pieces{static_cast<int>(call.samples), of_heads};
        call.key_heads % of_heads == 0 && fits(pieces))
      return pieces;
  return std::nullopt;
}

}  // namespace mindpipe
