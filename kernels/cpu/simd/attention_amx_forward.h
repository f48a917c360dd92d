#pragma once
#include "cpu/simd/attention_amx_softmax.h"

namespace mindpipe::MINDPIPE_ISA::amx {

constexpr int forward_keys = 128;  ///< keys of a step of the online softmax
constexpr int forward_parts = forward_keys / side;

/// What a forward task works in: q as the right factor over the width, k as the left one, v^T as the left one
/// over keys; scores and probabilities of two blocks of keys; out^T.
struct ForwardMemory {
  float *q, *scores, *p, *out, *factors, *k, *v;
  std::int64_t packed = 0;  ///< keys
};
inline std::size_t lay_out(const AttentionCall& call, void* scratch, ForwardMemory& m) {
  Carver carver{static_cast<float*>(scratch)};
  const std::int64_t steps = steps_of(call.width), strips = strips_of(call.width),
                     all_keys = whole_sides(call.keys);
  m.q = carver.take(2 * steps * tile_floats);
  m.scores = carver.take(2 * forward_keys * side);
  m.p = carver.take(2 * forward_keys * side / 2);
  m.out = carver.take(strips * half * side);
  m.k = carver.take(all_keys / half * steps * tile_floats);
  m.v = carver.take(all_keys / side * strips * tile_floats);
  m.factors = call.threshold == 0 ? nullptr : carver.take(square);
  return carver.bytes();
}
inline std::size_t forward_scratch(const AttentionCall& call) {
  ForwardMemory memory;
  return lay_out(call, nullptr, memory);
}

/// out = softmax(scale q k^T) v for a panel of 32 queries. Three blocks of keys are on their way at a time,
/// so that vectors work beside tiles: scores of one, the softmax of the one before, products with values of
/// that before.
template <class Unit>
class ForwardPanel {
 public:
  ForwardPanel(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
               ForwardMemory& m, Blocks<Unit>& blocks)
      : call_(call),
        m_(m),
        blocks_(blocks),
        sample_(sample),
        head_(head),
        key_head_(key_head_of(call, head)),
        first_query_(first_query),
        length_(length_of(call, sample)),
        width_(static_cast<int>(call.width)),
        steps_(steps_of(width_)),
        strips_(strips_of(width_)),
        columns_(at_most_side(call.queries - first_query)),
        limits_(limits_of(call, first_query, columns_, length_)),
        blocks_of_keys_((limits_.most + forward_keys - 1) / forward_keys),
        factor_(broadcast(static_cast<float>(call.scale) * log2_of_e)) {}

  void run() {
    pack();
    fetch_ahead();
    for (std::int64_t step = 0; step < blocks_of_keys_ + 2; ++step) run_step(step);
    if (blocks_of_keys_ == 0)
      std::memset(m_.out, 0, static_cast<std::size_t>(strips_ * half * side) * sizeof(float));
    finish();
  }

 private:
  const bf16* rows_of(const HeadsView& view, std::int64_t row, std::int64_t head) const {
    return row_of<const bf16>(view, call_, sample_, row, head);
  }
  /// Queries of this panel; keys that are seen and that no panel before has packed.
  void pack() {
    pack_right(rows_of(call_.q, first_query_, head_), call_.q.row, columns_, width_, m_.q);
    for (; m_.packed < limits_.most; m_.packed += side) {
      const int rows = at_most_side(length_ - m_.packed);
      pack_left(rows_of(call_.k, m_.packed, key_head_), call_.k.row, rows, width_,
                m_.k + m_.packed / half * steps_ * tile_floats);
      pack_step<true>(rows_of(call_.v, m_.packed, key_head_), call_.v.row, rows, width_,
                      m_.v + m_.packed / side * strips_ * tile_floats);
    }
  }
  /// What this panel writes in the end and the next one packs.
  void fetch_ahead() {
    ahead_.add(rows_of(call_.out, first_query_, head_), call_.out.row, columns_, width_, true);
    const std::int64_t next = first_query_ + side, rest = call_.queries - next;
    if (rest > 0) {
      const std::int64_t keys = visible_to(call_, next + at_most_side(rest) - 1, length_) - m_.packed;
      ahead_.add(rows_of(call_.q, next, head_), call_.q.row, at_most_side(rest), width_, false);
      ahead_.add(rows_of(call_.k, m_.packed, key_head_), call_.k.row, keys, width_, false);
      ahead_.add(rows_of(call_.v, m_.packed, key_head_), call_.v.row, keys, width_, false);
    }
    ahead_.spread((blocks_of_keys_ + 2) * forward_parts);
  }

  /// Parts of 32 keys that are seen of a block.
  int parts_of(std::int64_t block) const {
    if (block < 0 || block >= blocks_of_keys_) return 0;
    const std::int64_t left = (limits_.most - block * forward_keys + side - 1) / side;
    return static_cast<int>(left < forward_parts ? left : forward_parts);
  }
  float* scores_of(std::int64_t block) const { return m_.scores + block % 2 * forward_keys * side; }
  float* p_of(std::int64_t block) const { return m_.p + block % 2 * forward_keys * side / 2; }

  void run_step(std::int64_t step) {
    const int scored = parts_of(step), softened = parts_of(step - 1), added = parts_of(step - 2);
    Vector offset[2], total[2] = {zero(), zero()};
    if (softened > 0) {
      raise_maximum(limits_, (step - 1) * forward_keys, softened * side, scores_of(step - 1), factor_,
                    softmax_);
      for (int h = 0; h < 2; ++h) offset[h] = negate(softmax_.maximum[h] * factor_);
    }
    for (int part = 0; part < forward_parts; ++part) {
      ahead_.fetch();
      if (part < scored) multiply_scores(step, part);
      if (added > 0) add_values(step - 2, part, added);
      if (part < softened) soften_part(step - 1, part, offset, total);
    }
    blocks_.put_down();
    if (softened == 0) return;
    for (int h = 0; h < 2; ++h)
      softmax_.sum[h] = multiply_add(softmax_.sum[h], softmax_.correction[h], total[h]);
    if (step >= 2) correct();
  }
  void multiply_scores(std::int64_t block, int part) {
    const std::int64_t key = block * forward_keys + part * side;
    blocks_.template multiply<true>(
        {m_.k + key / half * steps_ * tile_floats, steps_ * tile_floats, tile_floats},
        {m_.q, tile_floats, 2 * tile_floats}, steps_, true, true, {},
        {scores_of(block) + part * square, side});
  }
  /// This part's share of out^T += v^T p.
  void add_values(std::int64_t block, int part, int steps) {
    const int pairs = (strips_ + 1) / 2;
    for (int pair = pairs * part / forward_parts; pair < pairs * (part + 1) / forward_parts; ++pair) {
      const Place sums{m_.out + pair * square, side};
      const TilePair left{m_.v + (block * forward_parts * strips_ + 2 * pair) * tile_floats, tile_floats,
                          strips_ * tile_floats},
          right{p_of(block), tile_floats, 2 * tile_floats};
      const bool tall = 2 * pair + 1 < strips_;
      if (block == 0) blocks_.template multiply<true>(left, right, steps, tall, true, {}, sums);
      else blocks_.template multiply<false>(left, right, steps, tall, true, sums, sums);
    }
  }
  void soften_part(std::int64_t block, int part, const Vector (&offset)[2], Vector (&total)[2]) {
    const std::int64_t key = block * forward_keys + part * side;
    const bool masked = key + side > limits_.whole, dropped = m_.factors != nullptr;
    if (dropped) draw(call_, limits_, sample_, head_, first_query_, key, m_.factors);
    const auto kernel = dropped ? (masked ? soften<Unit, true, true> : soften<Unit, false, true>)
                                : (masked ? soften<Unit, true, false> : soften<Unit, false, false>);
    kernel(limits_, key, scores_of(block) + part * square, factor_, offset, m_.factors, total,
           p_of(block) + part * (square / 2));
  }
  /// out^T *= correction, if any maximum rose: a factor of 1 changes nothing.
  void correct() {
    const __m512 one = _mm512_set1_ps(1.0f);
    const Vector(&factors)[2] = softmax_.correction;
    if ((_mm512_cmp_ps_mask(factors[0].part[0], one, _CMP_NEQ_UQ) |
         _mm512_cmp_ps_mask(factors[1].part[0], one, _CMP_NEQ_UQ)) == 0)
      return;
    Vector correction[2];
    to_columns(factors, correction);
    for (int i = 0; i < strips_ * half; ++i)
      for (int h = 0; h < 2; ++h) {
        float* at = m_.out + i * side + h * lanes;
        store(at, load(at) * correction[h]);
      }
  }
  /// out = out^T / sum, log_sum = scale maximum + log(sum)
  void finish() const {
    float* log_sum = static_cast<float*>(call_.log_sum) +
                     (sample_ * call_.query_heads + head_) * call_.queries + first_query_;
    Vector inverse[2], of_columns[2];
    for (int h = 0; h < 2; ++h) {
      const Vector sum = softmax_.sum[h];
      const Mask empty = equal(sum, zero());
      inverse[h] = select(empty, zero(), broadcast(1.0f) / sum);
      const Vector result =
          multiply_add(softmax_.maximum[h], broadcast(static_cast<float>(call_.scale)), log(sum));
      if (columns_ > h * lanes)
        store(log_sum + h * lanes, select(empty, zero(), result), columns_ - h * lanes);
    }
    to_columns(inverse, of_columns);
    unpack_columns<Unit>(m_.out, of_columns, columns_, width_,
                         row_of<bf16>(call_.out, call_, sample_, first_query_, head_), call_.out.row);
  }

  const AttentionCall& call_;
  ForwardMemory& m_;
  Blocks<Unit>& blocks_;
  const std::int64_t sample_, head_, key_head_, first_query_, length_;
  const int width_, steps_, strips_, columns_;
  const Limits limits_;
  const std::int64_t blocks_of_keys_;
  const Vector factor_;
  Softmax softmax_{{broadcast(lowest), broadcast(lowest)}, {zero(), zero()}, {zero(), zero()}};
  Ahead ahead_;
};

template <class Unit>
void forward(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
             std::int64_t last_query, void* scratch) {
  ForwardMemory memory;
  lay_out(call, scratch, memory);
  Blocks<Unit> blocks;
  for (; first_query < last_query; first_query += side)
    ForwardPanel<Unit>(call, sample, head, first_query, memory, blocks).run();
}

}  // namespace mindpipe::MINDPIPE_ISA::amx
