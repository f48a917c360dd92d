#pragma once
#include "cpu/simd/products_amx_ahead.h"
#include "cpu/simd/products_amx_tiles.h"

/// The innermost loop of the tile engine: a cell of 32 x 32 sums in four tiles.
namespace mindpipe::MINDPIPE_ISA::products::amx {

/// Where a cell's sums lie, their rows `row_bytes` apart; nowhere if `at` is null.
struct Place {
  float* at = nullptr;
  std::int64_t row_bytes = 0;
};

/// Which of a cell's tiles hold elements: the lower two where it is tall, the right two where it is wide.
struct CellShape {
  bool tall = false, wide = false;
};

/// Where the left operand's tiles of a panel lie, packed or in the factor itself; distances in bytes.
struct LeftTiles {
  const char* upper = nullptr;  ///< upper tiles of the first chunk
  std::int64_t to_lower = 0, between_rows = 0, between_chunks = 0;
};
inline LeftTiles left_tiles_in(const Chunk* chunks) {
  return {reinterpret_cast<const char*>(chunks), tile_bytes, 64, sizeof(Chunk)};
}

/// The cell in the tiles. Tile t of four is the upper left, upper right, lower left, lower right one; the
/// left operand's go to 4 and 5, the right one's to 6 and 7.
/// A cell's sums leave their tiles only when the next cell comes, one tile before each product of its first
/// chunk: four stores at once would hold up all loads behind them for as long as several chunks take.
template <class Tiles>
class CellInTiles {
 public:
  /// Sums of this cell = those at `from`, or zero, + left right; they will go to `to`. chunks > 0.
  void multiply(const LeftTiles& left, const Chunk* right, int chunks, CellShape shape, const Place& from,
                const Place& to, FactorsAhead& ahead) {
    const bool stays = from.at && to_.at == from.at;  // the same cell goes on
    if (shape.tall) {
      shape.wide ? multiply<true, true>(left, right, chunks, stays, from, ahead)
                 : multiply<true, false>(left, right, chunks, stays, from, ahead);
    } else {
      shape.wide ? multiply<false, true>(left, right, chunks, stays, from, ahead)
                 : multiply<false, false>(left, right, chunks, stays, from, ahead);
    }
    to_ = to;
    shape_ = shape;
  }

  /// The last cell's sums leave their tiles.
  void put_down() {
    put_down<0>();
    put_down<1>();
    put_down<2>();
    put_down<3>();
    to_ = {};
  }

 private:
  template <int t>
  static char* corner(const Place& place) {
    return reinterpret_cast<char*>(place.at) + t / 2 * 16 * place.row_bytes + t % 2 * 64;
  }
  template <int t>
  MINDPIPE_INLINE void put_down() {
    if (to_.at && (t < 2 || shape_.tall) && (t % 2 == 0 || shape_.wide))
      tiles_.template store<t>(corner<t>(to_), to_.row_bytes);
  }
  template <int t>
  MINDPIPE_INLINE void take_up(const Place& from) {
    if (from.at) tiles_.template load<t>(corner<t>(from), from.row_bytes);
    else tiles_.template clear<t>();
  }

  /// Tile t of the last cell gives way to that of the next one, if it has one.
  template <int t, bool used>
  MINDPIPE_INLINE void hand_over(bool stays, const Place& from) {
    if (stays) return;
    put_down<t>();
    if (used) take_up<t>(from);
  }

  /// A function of its own, whose loop keeps all it needs but `ahead` in registers.
  template <bool tall, bool wide>
  __attribute__((noinline)) void multiply(LeftTiles left, const Chunk* right, int chunks, bool stays,
                                          const Place& from, FactorsAhead& ahead) {
    tiles_.template load<6>(right->pairs[0], 64);
    tiles_.template load<4>(left.upper, left.between_rows);
    hand_over<0, true>(stays, from);
    tiles_.template multiply<0, 4, 6>();
    if constexpr (wide) tiles_.template load<7>(right->pairs[1], 64);
    hand_over<1, wide>(stays, from);
    if constexpr (wide) tiles_.template multiply<1, 4, 7>();
    if constexpr (tall) tiles_.template load<5>(left.upper + left.to_lower, left.between_rows);
    hand_over<2, tall>(stays, from);
    if constexpr (tall) tiles_.template multiply<2, 5, 6>();
    hand_over<3, tall && wide>(stays, from);
    if constexpr (tall && wide) tiles_.template multiply<3, 5, 7>();
    for (int chunk = 1; chunk < chunks; ++chunk) {
      ahead.fetch();
      left.upper += left.between_chunks;
      ++right;
      tiles_.template load<6>(right->pairs[0], 64);
      tiles_.template load<4>(left.upper, left.between_rows);
      if constexpr (wide) tiles_.template load<7>(right->pairs[1], 64);
      tiles_.template multiply<0, 4, 6>();
      if constexpr (wide) tiles_.template multiply<1, 4, 7>();
      if constexpr (tall) {
        tiles_.template load<5>(left.upper + left.to_lower, left.between_rows);
        tiles_.template multiply<2, 5, 6>();
        if constexpr (wide) tiles_.template multiply<3, 5, 7>();
      }
    }
  }

  Tiles tiles_;
  Place to_;         ///< where the sums in the tiles will go
  CellShape shape_;  ///< shape of the cell in the tiles
};

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
