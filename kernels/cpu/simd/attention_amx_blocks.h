#pragma once
#include "cpu/simd/products_amx_tiles.h"
#include "cpu/simd/vector.h"

/// Attention's products in tiles: blocks of 32 x 32 sums in four tiles, whose factors are packed.
namespace mindpipe::MINDPIPE_ISA::amx {

constexpr int side = 32, half = 16, tile_floats = 256;  ///< side of a block; half of it; words in a tile
constexpr int square = side * side;

/// The two tiles of a factor, by steps of 32 depths: floats to the second tile, and from one step to the
/// next.
struct TilePair {
  const float* at;
  std::int64_t other, step;
};
/// Where 32 x 32 sums lie, their rows `row` floats apart; nowhere if `at` is null.
struct Place {
  float* at = nullptr;
  std::int64_t row = 0;
};

/// Multiplies block after block. Sums of a block stay in the tiles until the next one needs them: tile by
/// tile one is stored and the other's loaded between the first products, because four stores at once hold up
/// the loads behind them.
template <class Unit>
class Blocks {
 public:
  /// to = from + left right, or left right where `begins`; only the upper half if not `tall`, the left half
  /// if not `wide`.
  template <bool begins>
  MINDPIPE_INLINE void multiply(TilePair left, TilePair right, int steps, bool tall, bool wide, Place from,
                                Place to) {
    if (!begins && held_.at == from.at) put_down();
    if (tall && wide && tall_ && wide_) multiply_whole<begins>(left, right, steps, from);
    else multiply_part(left, right, steps, tall, wide, begins ? Place{} : from);
    held_ = to;
    tall_ = tall;
    wide_ = wide;
  }
  /// Stores the last block's sums.
  void put_down() {
    if (held_.at == nullptr) return;
    hand_over<0, true>(true, false, {});
    hand_over<1, true>(wide_, false, {});
    hand_over<2, true>(tall_, false, {});
    hand_over<3, true>(tall_ && wide_, false, {});
    held_ = {};
    tall_ = wide_ = false;
  }

 private:
  static float* part_of(const Place& place, int tile) {
    return place.at + tile / 2 * half * place.row + tile % 2 * half;
  }
  template <int tile, bool begins>
  MINDPIPE_INLINE void hand_over(bool held, bool used, const Place& from) {
    constexpr std::int64_t bytes = sizeof(float);
    if (held) unit_.template store<tile>(part_of(held_, tile), held_.row * bytes);
    if (!used) return;
    if (begins) unit_.template clear<tile>();
    else unit_.template load<tile>(part_of(from, tile), from.row * bytes);
  }
  /// Both blocks are whole, the one that is held too.
  template <bool begins>
  MINDPIPE_INLINE void multiply_whole(TilePair left, TilePair right, int steps, const Place& from) {
    unit_.template load<6>(right.at, 64);
    unit_.template load<4>(left.at, 64);
    hand_over<0, begins>(true, true, from);
    unit_.template multiply<0, 4, 6>();
    unit_.template load<7>(right.at + right.other, 64);
    hand_over<1, begins>(true, true, from);
    unit_.template multiply<1, 4, 7>();
    unit_.template load<5>(left.at + left.other, 64);
    hand_over<2, begins>(true, true, from);
    unit_.template multiply<2, 5, 6>();
    hand_over<3, begins>(true, true, from);
    unit_.template multiply<3, 5, 7>();
    for (int step = 1; step < steps; ++step) {
      left.at += left.step;
      right.at += right.step;
      unit_.template load<6>(right.at, 64);
      unit_.template load<4>(left.at, 64);
      unit_.template load<7>(right.at + right.other, 64);
      unit_.template multiply<0, 4, 6>();
      unit_.template multiply<1, 4, 7>();
      unit_.template load<5>(left.at + left.other, 64);
      unit_.template multiply<2, 5, 6>();
      unit_.template multiply<3, 5, 7>();
    }
  }
  /// From zero if `from` is nowhere.
  __attribute__((noinline)) void multiply_part(TilePair left, TilePair right, int steps, bool tall, bool wide,
                                               Place from) {
    put_down();
    if (from.at == nullptr) take_up<true>(tall, wide, from);
    else take_up<false>(tall, wide, from);
    for (int step = 0; step < steps; ++step, left.at += left.step, right.at += right.step) {
      unit_.template load<6>(right.at, 64);
      unit_.template load<4>(left.at, 64);
      unit_.template multiply<0, 4, 6>();
      if (wide) {
        unit_.template load<7>(right.at + right.other, 64);
        unit_.template multiply<1, 4, 7>();
      }
      if (!tall) continue;
      unit_.template load<5>(left.at + left.other, 64);
      unit_.template multiply<2, 5, 6>();
      if (wide) unit_.template multiply<3, 5, 7>();
    }
  }
  template <bool begins>
  void take_up(bool tall, bool wide, const Place& from) {
    hand_over<0, begins>(false, true, from);
    hand_over<1, begins>(false, wide, from);
    hand_over<2, begins>(false, tall, from);
    hand_over<3, begins>(false, tall && wide, from);
  }

  Unit unit_;
  Place held_;  ///< where the sums in the tiles will go
  bool tall_ = false, wide_ = false;
};

}  // namespace mindpipe::MINDPIPE_ISA::amx
