#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "cuda/device/tile_sums.h"

/// The tensor core's fragments, against a model of a warp written from the PTX manual: which lane holds what
/// of mma.m16n8k16 and of ldmatrix.x2.trans.
using mindpipe::cuda::flash::Bf16;
using mindpipe::cuda::flash::FragmentSums;

namespace {

float widened(std::uint32_t bits) {
  bits <<= 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
float half_of(std::uint32_t pair, int which) { return widened(which == 0 ? pair & 0xffffu : pair >> 16); }

/// One lane at a time asks; what the warp computes together is worked out when all 32 have asked.
struct Model {
  struct Asked {
    std::array<std::uint32_t, 4> a;
    std::uint32_t b0, b1;
    float* c;
  };
  static inline int current = 0;
  static inline bool columns = false;  ///< b0 is the number of a load
  static inline std::array<std::vector<Asked>, 32> products;
  static inline std::array<std::vector<const Bf16*>, 32> loads;

  static int lane() { return current; }
  static std::uint32_t pair(const Bf16* at) {
    return static_cast<std::uint32_t>(at[0]) | static_cast<std::uint32_t>(at[1]) << 16;
  }
  static void multiply(float* c, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    products[static_cast<std::size_t>(current)].push_back({{a[0], a[1], a[2], a[3]}, b0, b1, c});
  }
  static void load_columns(const Bf16* row, std::uint32_t& b0, std::uint32_t& b1) {
    b0 = b1 = static_cast<std::uint32_t>(loads[static_cast<std::size_t>(current)].size());
    loads[static_cast<std::size_t>(current)].push_back(row);
  }

  /// ldmatrix .x2 .trans: matrix i has its rows at the addresses of lanes 8 i .. 8 i + 7; lane l gets
  /// elements (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
  static std::uint32_t loaded(std::uint32_t number, int lane, int matrix) {
    const auto row = [&](int r) { return loads[static_cast<std::size_t>(8 * matrix + r)][number]; };
    const int first = 2 * (lane % 4), col = lane / 4;
    return static_cast<std::uint32_t>(row(first)[col]) | static_cast<std::uint32_t>(row(first + 1)[col])
                                                             << 16;
  }
  /// mma.m16n8k16: the manual's groupID = lane >> 2, threadID_in_group = lane % 4.
  static void run() {
    for (std::size_t number = 0; number < products[0].size(); ++number) {
      float a[16][16], b[16][8];
      for (int lane = 0; lane < 32; ++lane) {
        const Asked& asked = products[static_cast<std::size_t>(lane)][number];
        const int group = lane >> 2, thread = lane % 4;
        for (int i = 0; i < 8; ++i) {  // a_i
          const int row = i < 2 || (4 <= i && i < 6) ? group : group + 8,
                    col = thread * 2 + (i & 1) + (i < 4 ? 0 : 8);
          a[row][col] = half_of(asked.a[static_cast<std::size_t>(i / 2)], i & 1);
        }
        for (int i = 0; i < 4; ++i) {  // b_i
          const std::uint32_t word = i < 2 ? asked.b0 : asked.b1;
          b[thread * 2 + (i & 1) + (i < 2 ? 0 : 8)][group] =
              half_of(columns ? loaded(word, lane, i / 2) : word, i & 1);
        }
      }
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {  // c_i
          const int row = i < 2 ? lane >> 2 : (lane >> 2) + 8, col = lane % 4 * 2 + (i & 1);
          for (int k = 0; k < 16; ++k)
            products[static_cast<std::size_t>(lane)][number].c[i] += a[row][k] * b[k][col];
        }
    }
    for (auto& of_lane : products) of_lane.clear();
    for (auto& of_lane : loads) of_lane.clear();
  }
};

constexpr int depth = 48, cols = 24, pitch = depth + 8, wide_pitch = cols + 8;

/// Small whole numbers, exact in bf16.
std::vector<Bf16> numbers(int count, int seed) {
  std::vector<Bf16> made;
  for (int i = 0; i < count; ++i) {
    const float x = static_cast<float>((i * 13 + seed) % 17 - 8);
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    made.push_back(static_cast<Bf16>(bits >> 16));
  }
  return made;
}

/// add(sums) on every lane; then each element that a lane holds is want(row, col), and each of 16 x cols is
/// held once.
template <class Add, class Want>
void expect_product(bool columns, const Add& add, const Want& want) {
  Model::columns = columns;
  std::vector<FragmentSums<Model, cols>> warp(32);
  for (Model::current = 0; Model::current < 32; ++Model::current) {
    warp[static_cast<std::size_t>(Model::current)].clear();
    add(warp[static_cast<std::size_t>(Model::current)]);
  }
  Model::run();
  int held[16][cols] = {};
  for (Model::current = 0; Model::current < 32; ++Model::current)
    for (int i = 0; i < FragmentSums<Model, cols>::count; ++i) {
      const int row = FragmentSums<Model, cols>::row_of(i), col = FragmentSums<Model, cols>::col_of(i);
      ++held[row][col];
      EXPECT_EQ(warp[static_cast<std::size_t>(Model::current)].value[i], want(row, col))
          << "row " << row << ", column " << col;
    }
  for (const auto& row : held)
    for (int times : row) EXPECT_EQ(times, 1);
}

TEST(CudaFragments, RowsTimesRowsAreTheProduct) {
  const auto a = numbers(16 * pitch, 1), b = numbers(cols * pitch, 5);
  expect_product(
      false, [&](auto& sums) { sums.template add_rows<depth>(a.data(), pitch, b.data(), pitch); },
      [&](int row, int col) {
        float sum = 0;
        for (int d = 0; d < depth; ++d)
          sum += widened(a[static_cast<std::size_t>(row * pitch + d)]) *
                 widened(b[static_cast<std::size_t>(col * pitch + d)]);
        return sum;
      });
}

TEST(CudaFragments, RowsTimesColumnsAreTheProduct) {
  const auto a = numbers(16 * pitch, 3), b = numbers(depth * wide_pitch, 2);
  expect_product(
      true, [&](auto& sums) { sums.template add_cols<depth>(a.data(), pitch, b.data(), wide_pitch); },
      [&](int row, int col) {
        float sum = 0;
        for (int d = 0; d < depth; ++d)
          sum += widened(a[static_cast<std::size_t>(row * pitch + d)]) *
                 widened(b[static_cast<std::size_t>(d * wide_pitch + col)]);
        return sum;
      });
}

}  // namespace
