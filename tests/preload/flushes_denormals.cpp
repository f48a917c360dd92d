#include <immintrin.h>

namespace {

/// What a library linked with -ffast-math does to those who load it: denormal operands and results become
/// zero.
constexpr unsigned operands_and_results = 0x8040;
const unsigned flushed = (_mm_setcsr(_mm_getcsr() | operands_and_results), _mm_getcsr());

}  // namespace

extern "C" unsigned flushes_denormals() { return flushed; }
