#pragma once
#include <string>

/// Every file in kernels/cpu/simd is compiled once for each instruction set, in a namespace of that name
/// (MINDPIPE_ISA is the name, MINDPIPE_ISA_LEVEL 0, 1 or 2). Such a file holds plain functions over pointers
/// and includes nothing of the standard library but <cstdint>, <cstddef>, <cmath> and <cstring>: an inline
/// function compiled for AVX-512 must never be the copy that the linker keeps for all.
///
/// A family of kernels is a struct of function pointers, declared in its own header, with one constant for
/// each set:
///   struct NormKernels { void (*forward)(...); };
///   MINDPIPE_DECLARE_KERNELS(NormKernels, norm_kernels)
/// and picked once: `kernels_(MINDPIPE_PICK_KERNELS(isa, norm_kernels))`.
namespace mindpipe {

/// Instruction sets in ascending order. The last two are AVX-512 with a unit for bf16: products of two a
/// lane, or tiles of them (with the system's permission). It changes the bits of bf16 products and attention
/// alone.
enum class Isa { baseline, avx2, avx512, avx512_bf16, avx512_amx };
inline constexpr Isa all_isas[] = {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::avx512_amx};
const char* name_of(Isa isa);
/// The best set of this processor ("auto"), or the named one; refuses one the processor lacks.
Isa choose_isa(const std::string& instructions);
bool processor_has(Isa isa);

}  // namespace mindpipe

#define MINDPIPE_DECLARE_KERNELS(Type, name) \
  namespace baseline {                       \
  extern const Type name;                    \
  }                                          \
  namespace avx2 {                           \
  extern const Type name;                    \
  }                                          \
  namespace avx512 {                         \
  extern const Type name;                    \
  }

#define MINDPIPE_PICK_KERNELS(isa, name)                       \
  ((isa) >= ::mindpipe::Isa::avx512 ? ::mindpipe::avx512::name \
   : (isa) == ::mindpipe::Isa::avx2 ? ::mindpipe::avx2::name   \
                                    : ::mindpipe::baseline::name)
