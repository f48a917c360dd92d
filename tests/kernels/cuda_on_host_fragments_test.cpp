#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "cuda/device/tile_sums.h"
#include "cuda/launch.h"
#include "kernels/on_a_stream.h"

/// Sums of tensor cores in fragments, by a warp on the CUDA runtime of cuda_on_host, whose tensor core is
/// written from the PTX manual.
using mindpipe::cuda::flash::Bf16;
using mindpipe::testing::on_a_stream;

namespace {

constexpr int depth = 48, cols = 24, pitch = depth + 8, wide_pitch = cols + 8;

/// Small whole numbers, exact in bf16.
std::vector<Bf16> numbers(int count, int seed) {
  std::vector<Bf16> made;
  for (int i = 0; i < count; ++i) {
    const float x = static_cast<float>((i * 13 + seed) % 17 - 8);
    made.push_back(static_cast<Bf16>(std::bit_cast<std::uint32_t>(x) >> 16));
  }
  return made;
}

using Sums = mindpipe::cuda::flash::WarpSums<Bf16, cols>;

struct Product {
  const Bf16 *a, *b;
  bool columns;
  float (*c)[cols];
  int (*held)[cols];
};
__global__ void __launch_bounds__(32) multiply(Product product) {
  Sums sums;
  sums.clear();
  if (product.columns) sums.add_cols<depth>(product.a, pitch, product.b, wide_pitch);
  else sums.add_rows<depth>(product.a, pitch, product.b, pitch);
  for (int i = 0; i < Sums::count; ++i) {
    product.c[Sums::row_of(i)][Sums::col_of(i)] = sums.value[i];
    ++product.held[Sums::row_of(i)][Sums::col_of(i)];
  }
}

/// b_at(d, col) is an element of b. Each element of 16 x cols is held by one lane once.
template <class At>
void expect_product(bool columns, const std::vector<Bf16>& a, const std::vector<Bf16>& b, const At& b_at) {
  float c[16][cols];
  int held[16][cols] = {};
  on_a_stream([&](cudaStream_t stream) {
    mindpipe::cuda::launch(stream, {1, 32}, multiply, Product{a.data(), b.data(), columns, c, held});
  });
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < cols; ++col) {
      float sum = 0;
      for (int d = 0; d < depth; ++d)
        sum += mindpipe::cuda::flash::widen(a[static_cast<std::size_t>(row * pitch + d)]) *
               mindpipe::cuda::flash::widen(b[static_cast<std::size_t>(b_at(d, col))]);
      EXPECT_EQ(c[row][col], sum) << "row " << row << ", column " << col;
      EXPECT_EQ(held[row][col], 1);
    }
}

TEST(CudaFragments, RowsTimesRowsAreTheProduct) {
  expect_product(false, numbers(16 * pitch, 1), numbers(cols * pitch, 5),
                 [](int d, int col) { return col * pitch + d; });
}

TEST(CudaFragments, RowsTimesColumnsAreTheProduct) {
  expect_product(true, numbers(16 * pitch, 3), numbers(depth * wide_pitch, 2),
                 [](int d, int col) { return d * wide_pitch + col; });
}

}  // namespace
