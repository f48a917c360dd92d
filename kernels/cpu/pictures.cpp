#include "operations/pictures.h"

#include <cstring>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"

namespace mindpipe {
namespace {

/// What each byte becomes in each channel, as bits of an element.
template <class Bits>
struct Normalised {
  Bits of[PictureShape::most_channels][256];

  /// Computed as a number of type A, then rounded by `convert`.
  template <class A, class Convert>
  Normalised(const PictureShape& p, A, const Convert& convert) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      A exact[256];
      for (int byte = 0; byte < 256; ++byte)
        exact[byte] =
            (static_cast<A>(byte) / A(255) - static_cast<A>(p.mean[c])) / static_cast<A>(p.deviation[c]);
      convert(exact, of[c], 0, 256);
    }
  }
};

/// Fills row n of all rows of y.
template <class Bits>
void fill_row(const PatchCall& call, const std::uint8_t* pictures, const Normalised<Bits>& numbers, Bits* y,
              std::int64_t n) {
  const PictureShape& p = call.picture;
  const std::int64_t patch = n % call.rows - call.first_row, across = p.width / p.side;
  y += n * call.cols;
  if (patch < 0 || patch >= call.patches) {
    std::memset(y, 0, static_cast<std::size_t>(call.cols) * sizeof(Bits));
    return;
  }
  const std::uint8_t* corner = pictures + n / call.rows * p.channels * p.height * p.width +
                               patch / across * p.side * p.width + patch % across * p.side;
  for (std::int64_t c = 0; c < p.channels; ++c)
    for (std::int64_t i = 0; i < p.side; ++i)
      for (std::int64_t j = 0; j < p.side; ++j)
        *y++ = numbers.of[c][corner[(c * p.height + i) * p.width + j]];
}

}  // namespace

void CpuBackend::run(const PatchesOperands& o) {
  const PatchCall call = o.checked();
  const DType dtype = o.y.dtype;
  const auto convert =
      MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).convert[dtype_index(wide(dtype))][dtype_index(dtype)];
  const auto fill = [&](auto bits, auto exact) {
    using Bits = decltype(bits);
    const Normalised<Bits> numbers(call.picture, exact, convert);
    in_ranges(threads_, call.samples * call.rows, row_grain(o.y.cols()), [&](auto first, auto last) {
      for (std::int64_t n = first; n < last; ++n)
        fill_row(call, o.pictures.as<std::uint8_t>(), numbers, o.y.as<Bits>(), n);
    });
  };
  if (dtype == DType::f64) fill(std::uint64_t{}, double{});
  else if (dtype == DType::f32) fill(std::uint32_t{}, float{});
  else fill(std::uint16_t{}, float{});
}

}  // namespace mindpipe
