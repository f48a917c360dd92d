#pragma once
#include "cpu/simd/attention_amx_softmax.h"
#include "cpu/simd/attention_backward.h"

namespace mindpipe::MINDPIPE_ISA::amx {

constexpr int block_queries = 128, block_keys = 128;  ///< block of the products over queries, and over keys
constexpr int block_panels = block_queries / side, block_parts = block_keys / side;

/// What a backward task works in. Of a key head: k, v as left factors over the width, k^T over keys; sums. Of
/// a block of queries: q and dout as right factors over the width and over queries, p and ds as left factors
/// over queries, ds as right factor over keys.
struct BackwardMemory {
  float *k, *v, *k_across, *dk, *dv;
  float *q, *dout, *q_across, *dout_across, *dq, *log2_sum, *delta;
  float *scores, *gradients, *p, *ds, *ds_across, *factors;
};
inline std::size_t lay_out(const AttentionCall& call, void* scratch, BackwardMemory& m) {
  Carver carver{static_cast<float*>(scratch)};
  const std::int64_t steps = steps_of(call.width), strips = strips_of(call.width),
                     all_keys = whole_sides(call.keys);
  for (float** left : {&m.k, &m.v}) *left = carver.take(all_keys / half * steps * tile_floats);
  m.k_across = carver.take(all_keys / side * strips * tile_floats);
  for (float** sums : {&m.dk, &m.dv}) *sums = carver.take(all_keys * strips * half);
  for (float** right : {&m.q, &m.dout}) *right = carver.take(block_panels * 2 * steps * tile_floats);
  for (float** right : {&m.q_across, &m.dout_across})
    *right = carver.take(block_panels * strips * tile_floats);
  m.dq = carver.take(block_queries * strips * half);
  for (float** row : {&m.log2_sum, &m.delta}) *row = carver.take(block_queries);
  for (float** two : {&m.scores, &m.gradients}) *two = carver.take(2 * square);
  for (float** many : {&m.p, &m.ds, &m.ds_across}) *many = carver.take(block_queries * block_keys / 2);
  m.factors = call.threshold == 0 ? nullptr : carver.take(square);
  return carver.bytes();
}
inline std::size_t backward_scratch(const AttentionCall& call) {
  BackwardMemory memory;
  return lay_out(call, nullptr, memory);
}

/// The gradients of a block of queries, panel by panel of 32: dq is written, its part of dk and dv is added.
template <class Unit>
class BackwardBlock {
 public:
  BackwardBlock(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
                BackwardMemory& m, Blocks<Unit>& blocks)
      : call_(call),
        m_(m),
        blocks_(blocks),
        sample_(sample),
        head_(head),
        first_query_(first_query),
        width_(static_cast<int>(call.width)),
        steps_(steps_of(width_)),
        strips_(strips_of(width_)),
        panels_(static_cast<int>(whole_sides(call.queries - first_query < block_queries
                                                 ? call.queries - first_query
                                                 : block_queries) /
                                 side)) {
    const std::int64_t length = length_of(call, sample);
    fetch(0);
    for (int i = 0; i < panels_; ++i) {
      if (i + 1 < panels_) fetch(i + 1);
      limits_[i] = limits_of(call, query_of(i), columns_of(i), length);
      pack(i);
    }
  }
  /// Keys that any query of the block sees.
  std::int64_t seen() const { return limits_[panels_ - 1].most; }

  /// Keys before `begun` have sums in dk and dv already.
  void run(std::int64_t begun) {
    for (std::int64_t key = 0; key < seen(); key += block_keys) {
      soften_keys(key);
      add_over_queries(key, begun);
      add_over_keys(key);
      blocks_.put_down();
    }
    put_down_queries();
  }

 private:
  std::int64_t query_of(int panel) const { return first_query_ + panel * side; }
  int columns_of(int panel) const { return at_most_side(call_.queries - query_of(panel)); }
  /// Parts of 32 keys, from `key` on, that the panel sees.
  int parts_of(int panel, std::int64_t key) const {
    const std::int64_t parts = (limits_[panel].most - key + side - 1) / side;
    return static_cast<int>(parts < 0 ? 0 : parts < block_parts ? parts : block_parts);
  }
  const bf16* rows_of(const HeadsView& view, int panel) const {
    return row_of<const bf16>(view, call_, sample_, query_of(panel), head_);
  }

  void fetch(int panel) const {
    for (const HeadsView* view : {&call_.q, &call_.dout, &call_.out})
      fetch_rows(rows_of(*view, panel), view->row, columns_of(panel), width_);
  }
  void pack(int panel) {
    const int columns = columns_of(panel);
    const bf16 *q = rows_of(call_.q, panel), *dout = rows_of(call_.dout, panel);
    const std::int64_t along = panel * 2 * steps_ * tile_floats, across = panel * strips_ * tile_floats;
    pack_right(q, call_.q.row, columns, width_, m_.q + along);
    pack_right(dout, call_.dout.row, columns, width_, m_.dout + along);
    pack_step<false>(q, call_.q.row, columns, width_, m_.q_across + across);
    pack_step<false>(dout, call_.dout.row, columns, width_, m_.dout_across + across);
    const float* log_sum = static_cast<const float*>(call_.log_sum) +
                           (sample_ * call_.query_heads + head_) * call_.queries + query_of(panel);
    for (int i = 0; i < side; i += lanes) {
      store(m_.log2_sum + panel * side + i,
            i < columns ? load(log_sum + i, columns - i) * broadcast(log2_of_e) : zero());
      store(m_.delta + panel * side + i, zero());
    }
    tile::row_products(dout, call_.dout.row, rows_of(call_.out, panel), call_.out.row, columns, width_,
                       m_.delta + panel * side);
  }

  /// A panel of queries and a part of a block's keys.
  struct Meeting {
    int panel = 0, part = 0;
  };
  /// The next one of the keys from `key` on; false after the last one.
  bool advance(std::int64_t key, Meeting& at) const {
    if (++at.part < parts_of(at.panel, key)) return true;
    at.part = 0;
    while (++at.panel < panels_)
      if (parts_of(at.panel, key) > 0) return true;
    return false;
  }
  /// p and ds of the keys from `key` on: scores of one meeting are multiplied while vectors work on the one
  /// before.
  void soften_keys(std::int64_t key) {
    Meeting next{0, -1};
    bool more = advance(key, next);
    if (more) multiply_scores(key, next, 0);
    for (int turn = 0; more; ++turn) {
      const Meeting now = next;
      more = advance(key, next);
      if (more) multiply_scores(key, next, (turn + 1) % 2);
      else blocks_.put_down();
      soften(key, now, turn % 2);
    }
  }
  void multiply_scores(std::int64_t key, const Meeting& at, int buffer) {
    const std::int64_t left = (key + at.part * side) / half * steps_ * tile_floats,
                       right = at.panel * 2 * steps_ * tile_floats;
    const auto multiply = [&](const float* of_keys, const float* of_queries, float* to) {
      blocks_.template multiply<true>({of_keys + left, steps_ * tile_floats, tile_floats},
                                      {of_queries + right, tile_floats, 2 * tile_floats}, steps_, true, true,
                                      {}, {to + buffer * square, side});
    };
    multiply(m_.k, m_.q, m_.scores);
    multiply(m_.v, m_.dout, m_.gradients);
  }
  void soften(std::int64_t key, const Meeting& at, int buffer) {
    const Limits& limits = limits_[at.panel];
    const std::int64_t first = key + at.part * side,
                       left = (2 * at.part * block_panels + at.panel) * tile_floats;
    const bool masked = first + side > limits.whole, dropped = m_.factors != nullptr;
    if (dropped) draw(call_, limits, sample_, head_, query_of(at.panel), first, m_.factors);
    const auto kernel =
        dropped ? (masked ? soften_backward<Unit, true, true> : soften_backward<Unit, false, true>)
                : (masked ? soften_backward<Unit, true, false> : soften_backward<Unit, false, false>);
    kernel(limits, first, m_.scores + buffer * square, m_.gradients + buffer * square,
           broadcast(static_cast<float>(call_.scale) * log2_of_e), m_.log2_sum + at.panel * side,
           m_.delta + at.panel * side, m_.factors, block_panels * tile_floats, m_.p + left, m_.ds + left,
           m_.ds_across + (at.panel * block_parts + at.part) * 2 * tile_floats);
  }

  void multiply(TilePair left, TilePair right, int steps, bool tall, bool wide, bool begins, Place sums) {
    if (begins) blocks_.template multiply<true>(left, right, steps, tall, wide, {}, sums);
    else blocks_.template multiply<false>(left, right, steps, tall, wide, sums, sums);
  }
  /// dv += p dout, dk += ds q
  void add_over_queries(std::int64_t key, std::int64_t begun) {
    for (int part = 0; part < parts_of(panels_ - 1, key); ++part) {
      int panel = 0;
      while (parts_of(panel, key) <= part) ++panel;
      const std::int64_t first = key + part * side, left = (2 * part * block_panels + panel) * tile_floats,
                         right = panel * strips_ * tile_floats, row = strips_ * half;
      const auto add = [&](const float* of_keys, const float* of_queries, int strip, float* to) {
        multiply({of_keys + left, block_panels * tile_floats, tile_floats},
                 {of_queries + right + strip * tile_floats, tile_floats, strips_ * tile_floats},
                 panels_ - panel, true, strip + 1 < strips_, first >= begun,
                 {to + first * row + strip * half, row});
      };
      for (int strip = 0; strip < strips_; strip += 2) {
        add(m_.p, m_.dout_across, strip, m_.dv);
        add(m_.ds, m_.q_across, strip, m_.dk);
      }
    }
  }
  /// dq^T += k^T ds
  void add_over_keys(std::int64_t key) {
    for (int panel = 0; panel < panels_; ++panel) {
      const int parts = parts_of(panel, key);
      if (parts == 0) continue;
      for (int strip = 0; strip < strips_; strip += 2)
        multiply(
            {m_.k_across + (key / side * strips_ + strip) * tile_floats, tile_floats, strips_ * tile_floats},
            {m_.ds_across + panel * block_parts * 2 * tile_floats, tile_floats, 2 * tile_floats}, parts,
            strip + 1 < strips_, true, key == 0, {m_.dq + (panel * strips_ + strip) * half * side, side});
    }
  }
  void put_down_queries() {
    const Vector scale = broadcast(static_cast<float>(call_.scale)), factors[2] = {scale, scale};
    const auto fetch_dq = [&](int panel) {
      fetch_rows<1>(rows_of(call_.dq, panel), call_.dq.row, columns_of(panel), width_);
    };
    fetch_dq(0);
    for (int i = 0; i < panels_; ++i) {
      if (i + 1 < panels_) fetch_dq(i + 1);
      float* dq = m_.dq + i * strips_ * half * side;
      if (limits_[i].most == 0)
        std::memset(dq, 0, static_cast<std::size_t>(strips_ * half * side) * sizeof(float));
      unpack_columns<Unit>(dq, factors, columns_of(i), width_,
                           row_of<bf16>(call_.dq, call_, sample_, query_of(i), head_), call_.dq.row);
    }
  }

  const AttentionCall& call_;
  BackwardMemory& m_;
  Blocks<Unit>& blocks_;
  const std::int64_t sample_, head_, first_query_;
  const int width_, steps_, strips_, panels_;
  Limits limits_[block_panels];
};

/// Packs keys and values of a head.
inline void pack_keys(const AttentionCall& call, std::int64_t sample, std::int64_t key_head,
                      BackwardMemory& m) {
  const int width = static_cast<int>(call.width), steps = steps_of(width), strips = strips_of(width);
  const std::int64_t length = length_of(call, sample);
  const auto rows_of = [&](const HeadsView& view, std::int64_t key) {
    return row_of<const bf16>(view, call, sample, key, key_head);
  };
  const auto fetch = [&](std::int64_t key) {
    for (const HeadsView* view : {&call.k, &call.v})
      fetch_rows(rows_of(*view, key), view->row, at_most_side(length - key), width);
  };
  fetch(0);
  for (std::int64_t key = 0; key < length; key += side) {
    const int rows = at_most_side(length - key);
    fetch(key + side);
    pack_left(rows_of(call.k, key), call.k.row, rows, width, m.k + key / half * steps * tile_floats);
    pack_left(rows_of(call.v, key), call.v.row, rows, width, m.v + key / half * steps * tile_floats);
    pack_step<true>(rows_of(call.k, key), call.k.row, rows, width,
                    m.k_across + key / side * strips * tile_floats);
  }
}

/// Rows of sums times a factor into rows [0, done) of the key head; zeros into the rest.
template <class Unit>
void put_down_keys(const AttentionCall& call, const HeadsView& to, std::int64_t sample, std::int64_t key_head,
                   const float* from, float factor, std::int64_t done) {
  const int width = static_cast<int>(call.width);
  const std::int64_t row = strips_of(width) * half;
  for (std::int64_t key = 0; key < done; ++key, from += row) {
    bf16* at = row_of<bf16>(to, call, sample, key, key_head);
    if (key + half < done) fetch_rows<1>(at + half * to.row, to.row, 1, width);
    for (int first = 0; first < width; first += side) {
      const Vector low = load(from + first) * broadcast(factor),
                   high = width - first > half ? load(from + first + half) * broadcast(factor) : zero();
      store_halves(at + first, halves_of<Unit>(low, high), width - first);
    }
  }
  tile::clear_rows(row_of<bf16>(to, call, sample, done, key_head), to.row, call.keys - done, width);
}

/// dv = (p D)^T dout, ds = p ((dout v^T) D - dout . out), dq = scale ds k, dk = scale ds^T q: query heads of
/// the group in order, blocks of queries in order, blocks of keys in order.
template <class Unit>
void backward(const AttentionCall& call, std::int64_t sample, std::int64_t key_head, void* scratch) {
  BackwardMemory m;
  lay_out(call, scratch, m);
  Blocks<Unit> blocks;
  pack_keys(call, sample, key_head, m);
  const std::int64_t length = length_of(call, sample), group = call.query_heads / call.key_heads;
  std::int64_t begun = 0;  // keys
  for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head)
    for (std::int64_t first = 0; first < call.queries; first += block_queries) {
      BackwardBlock<Unit> block(call, sample, head, first, m, blocks);
      block.run(begun);
      if (block.seen() > begun) begun = whole_sides(block.seen());
    }
  const std::int64_t done = begun < length ? begun : length;
  put_down_keys<Unit>(call, call.dk, sample, key_head, m.dk, static_cast<float>(call.scale), done);
  put_down_keys<Unit>(call, call.dv, sample, key_head, m.dv, 1, done);
}

}  // namespace mindpipe::MINDPIPE_ISA::amx
