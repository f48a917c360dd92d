#pragma once
#include "operations/calls.h"
#include "operations/operands.h"

/// Pictures as bytes, cut into patches.
namespace mindpipe {

/// y[s, first_row + p] = patch p of picture s, by columns (channel, row, column of the patch), in reading
/// order of patches; y's other rows are zeros. A number is (byte / 255 - mean) / deviation, by channel, in
/// f32 (f64 beside f64). pictures u8 [samples][channels][height][width], y [samples, rows, channels side
/// side].
struct PatchesOperands {
  Tensor pictures;
  PictureShape picture;
  std::int64_t first_row = 0;
  Tensor y;

  PatchCall checked() const {
    const PictureShape& p = picture;
    MP_CHECK(p.side > 0 && p.channels > 0 && p.channels <= PictureShape::most_channels &&
                 p.height % p.side == 0 && p.width % p.side == 0,
             "patches: {} x {} pictures of {} channels in patches of {}", p.height, p.width, p.channels,
             p.side);
    dtype_index(y.dtype);
    MP_CHECK(y.shape.rank == 3 && y.cols() == p.patch_size() && first_row >= 0 &&
                 first_row + p.patches() <= y.shape[1],
             "patches: {} for {} patches of {} numbers from row {} on", to_string(y.shape), p.patches(),
             p.patch_size(), first_row);
    require(pictures, y.shape[0] * p.channels * p.height * p.width, DType::u8, "patches", "pictures");
    return {y.shape[0], y.shape[1], y.cols(), first_row, p.patches(), p};
  }
};

}  // namespace mindpipe
