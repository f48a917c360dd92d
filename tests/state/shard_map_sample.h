#pragma once
#include "layers/unit.h"

namespace mindpipe {

/// Parameters that are split both ways, stacked of several pieces, padded, and not split, on rank `rank` of
/// two, with two of four logical shards on each.
inline void describe(Unit& unit, int rank) {
  const Initial drawn{.kind = Initial::Kind::normal, .deviation = 0.5};
  unit.add(
      {.pieces = {{"q.weight", 8}, {"k.weight", 8}}, .columns = 5, .split = Split::out, .initial = drawn});
  unit.add({.pieces = {{"output.weight", 6}}, .columns = 8, .split = Split::in, .initial = drawn});
  unit.add({.pieces = {{"table.weight", 128, 28}}, .columns = 3, .split = Split::out, .initial = drawn});
  unit.add({.pieces = {{"q.bias", 8}, {"k.bias", 12, 3}}, .split = Split::out, .initial = drawn});
  unit.add({.pieces = {{"norm.weight", 7}}, .initial = {.kind = Initial::Kind::one}});
  unit.lay_out({4, 2, 2 * rank}, 4, 0, DType::f32);
}

}  // namespace mindpipe
