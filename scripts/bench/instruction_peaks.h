#pragma once
#include <cstdint>

#include "cpu/isa.h"

/// What the instructions that products are made of reach on one thread, measured: no data sheet knows how far
/// the clock falls when they work on real numbers.
namespace mindpipe::bench {

enum class Unit { multiply_add, pairs, tiles };
const char* name_of(Unit unit);
/// The unit that multiplies bf16 where products have this instruction set; without one, bf16 is widened and
/// multiplied as f32.
Unit unit_for_bf16(Isa isa);

/// GFLOP/s. `raw`: operands stay in registers, tiles of them are zeros; no loop can be faster. `real`: random
/// operands, loaded from the first cache in each step as the inner loop of a product loads them; no product
/// can be faster.
struct Peak {
  double raw = 0, real = 0;
};
/// Measures both, 10 ms each; the processor must have `isa`, which must be AVX2 or more.
Peak measure_peak(Unit unit, Isa isa);

}  // namespace mindpipe::bench
