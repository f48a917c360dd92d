#include "cpu/products.h"

#include <algorithm>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/products_f64.h"
#include "operations/products.h"

namespace mindpipe {
namespace {

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

MatrixView view_of(const Tensor& t) { return {t.data, t.dtype == DType::bf16}; }

Factor factor_of(const Tensor& t, bool depth_first) {
  return {t.data, t.cols(), depth_first, t.dtype == DType::bf16};
}

/// How threads share the tiles of a product: rows * cols of them, each with its range of both.
struct ThreadGrid {
  int rows, cols;
};
/// A small product is one thread's. A thread multiplies its tiles and packs its columns; packing an element
/// costs about as much as meeting 16 rows.
ThreadGrid grid_of(const ProductKernels& kernels, std::int64_t rows, std::int64_t cols, std::int64_t depth,
                   int threads) {
  const double work = static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth);
  if (work < 1e5) return {1, 1};
  const std::int64_t row_tiles = divided_up(rows, kernels.tile_rows),
                     col_tiles = divided_up(cols, kernels.tile_cols);
  ThreadGrid best{1, 1};
  double least = 1e300;
  for (int down = 1; down <= threads; ++down) {
    const int across = threads / down;
    const double cost = static_cast<double>(divided_up(col_tiles, across)) *
                        (static_cast<double>(divided_up(row_tiles, down) * kernels.tile_rows) + 16.0);
    if (cost < least * 0.999) {
      least = cost;
      best = {down, across};
    }
  }
  return best;
}

std::size_t bytes_of_thread(const ProductKernels& kernels, const ThreadGrid& grid, std::int64_t rows,
                            std::int64_t depth) {
  return kernels.workspace_bytes(divided_up(rows, grid.rows), depth);
}

/// How a thread's part is cut into tasks that another thread may take over. Strips of columns cost nothing:
/// the engine works in such. Where there are few, the last quarter of the last one's rows is a task too,
/// though it packs the strip again.
struct Cuts {
  std::int64_t strips;
  bool of_rows;
  Cuts(std::int64_t rows, std::int64_t cols)
      : strips(std::max<std::int64_t>(1, divided_up(cols, 768))), of_rows(strips < 8 && rows >= 512) {}
  int count() const { return static_cast<int>(strips) + of_rows; }
};

ProductPart task_of(const ProductPart& part, const Cuts& cuts, std::int64_t task, std::int64_t tile_cols) {
  const std::int64_t tiles = divided_up(part.last_col - part.first_col, tile_cols),
                     strip = std::min(task, cuts.strips - 1);
  const auto col = [&](std::int64_t i) {
    return std::min(part.last_col, part.first_col + tiles * i / cuts.strips * tile_cols);
  };
  ProductPart some{part.first_row, part.last_row, col(strip), col(strip + 1)};
  if (!cuts.of_rows || strip < cuts.strips - 1) return some;
  const std::int64_t cut = part.last_row - (part.last_row - part.first_row) / 4;
  (task == strip ? some.last_row : some.first_row) = cut;
  return some;
}

}  // namespace

std::size_t product_workspace(const ProductKernels& kernels, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, int threads) {
  const ThreadGrid grid = grid_of(kernels, rows, cols, depth, threads);
  return bytes_of_thread(kernels, grid, rows, depth) * static_cast<std::size_t>(grid.rows * grid.cols);
}

void run_product(const ProductKernels& kernels, const Product& product, int threads, void* workspace) {
  const std::int64_t col_tiles = divided_up(product.cols, kernels.tile_cols);
  const ThreadGrid grid = grid_of(kernels, product.rows, product.cols, product.depth, threads);
  const std::size_t bytes = bytes_of_thread(kernels, grid, product.rows, product.depth);
  const auto row = [&](std::int64_t i) { return product.rows * i / grid.rows; };
  const auto col = [&](std::int64_t i) {
    return std::min(product.cols, col_tiles * i / grid.cols * kernels.tile_cols);
  };
  const int parts = grid.rows * grid.cols;
  if (parts == 1) return kernels.run(product, {0, product.rows, 0, product.cols}, workspace);
  const Cuts cuts(product.rows / grid.rows, product.cols / grid.cols);
  in_shares(parts, parts * cuts.count(), [&](int thread, int at) {
    const int r = at / cuts.count() / grid.cols, c = at / cuts.count() % grid.cols;
    const ProductPart part{row(r), row(r + 1), col(c), col(c + 1)};
    kernels.run(product, task_of(part, cuts, at % cuts.count(), kernels.tile_cols),
                static_cast<char*>(workspace) + static_cast<std::size_t>(thread) * bytes);
  });
}

const ProductKernels& choose_product_kernels(Isa isa, bool bf16) {
  if (bf16 && isa == Isa::avx512_amx) return avx512::amx_kernels;
  if (bf16 && isa == Isa::avx512_bf16) return avx512::pair_kernels;
  return MINDPIPE_PICK_KERNELS(isa, product_kernels);
}

void CpuBackend::multiply(const Product& product) {
  const ProductKernels& kernels = choose_product_kernels(isa_, product.a.bf16);
  run_product(kernels, product, threads_,
              product_area_.take(
                  memory_, product_workspace(kernels, product.rows, product.cols, product.depth, threads_)));
}

void CpuBackend::run(const LinearOperands& o) {
  const ProductCall call = o.checked();
  if (call.operands == DType::f64) return linear_f64(o, threads_);
  multiply({factor_of(o.x, false), factor_of(o.w, false), call.n, call.m, call.k, view_of(o.y),
            view_of(o.before), view_of(o.bias), o.activation});
}

void CpuBackend::run(const LinearBackwardInputOperands& o) {
  const ProductCall call = o.checked();
  if (call.operands == DType::f64) return linear_backward_input_f64(o, threads_);
  multiply({factor_of(o.dy, false), factor_of(o.w, true), call.n, call.k, call.m, view_of(o.dx),
            view_of(o.before), MatrixView(), o.activation, true});
}

void CpuBackend::run(const LinearBackwardWeightOperands& o) {
  const ProductCall call = o.checked();
  if (o.is_first) run(FillOperands{o.dw, 0});
  if (call.operands == DType::f64) return linear_backward_weight_f64(o, threads_);
  multiply({factor_of(o.dy, true), factor_of(o.x, true), call.m, call.k, call.n, view_of(o.dw), MatrixView(),
            MatrixView(), Activation::none, true, true});
}

}  // namespace mindpipe
