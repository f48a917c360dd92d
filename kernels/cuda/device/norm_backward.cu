#include "cuda/device/norm_kernels.h"
#include "cuda/device/row_team.h"
#include "operations/column_chunks.h"

/// Both gradients of a norm while a row of dy and x is in registers, and that of a bias whose columns the
/// residual has: a block takes a chunk of rows, its teams a row each in turn, and every thread adds up its
/// own columns of all rows of its team. As plain loops: `norm_backward` in tests/kernels/reference.h.
namespace mindpipe::cuda {
namespace {

constexpr int summed_groups = 2;  ///< groups of a row that a thread has: half of what it holds without sums
constexpr int least_threads = 256;

inline int team_of(int64_t cols, int size) {
  int threads = 32;
  while (threads < most_threads && static_cast<int64_t>(threads) * summed_groups * size < cols) threads *= 2;
  return threads;
}

template <class T>
struct NormRows {
  bool rms;
  const T *dy, *x, *gain;
  const Wide<T>* statistics;
  const T* residual;
  T* dx;
  RowParts shape;
};
/// Where the sums of chunks go: [parts of this launch, chunks, columns].
template <class A>
struct NormSums {
  A *scaled, *plain, *past;
  int64_t first_part, chunks;
};

/// This thread's part of a row of dy and x. What the gradient is added to is asked for with them only if
/// `holds_past`: single elements, and sums of its columns too, would take more registers than there are.
template <class T, bool wide, bool holds_past>
struct HeldRow {
  using A = Wide<T>;
  static constexpr int size = lanes<T>;
  int rank, threads;
  A mean, inverse;
  Raw<T, size> dy[summed_groups], x[summed_groups];
  Raw<T, size> past[holds_past ? summed_groups : 1];

  /// Calls body(v, first column, Whole or Some) for this thread's groups of the first `cols` columns.
  template <class Body>
  __device__ void walk(int64_t cols, const Body& body) const {
#pragma unroll
    for (int v = 0; v < summed_groups; ++v) {
      const int64_t j = static_cast<int64_t>(v * threads + rank) * size;
      if (j >= cols) continue;
      if constexpr (wide) body(v, j, Whole{});
      else body(v, j, Some{static_cast<int>(cols - j < size ? cols - j : size)});
    }
  }
  __device__ void take(const NormRows<T>& in, int64_t row, int64_t cols) {
    const int64_t begin = row * in.shape.cols;
    mean = in.statistics[2 * row];
    inverse = in.statistics[2 * row + 1];
    walk(cols, [&](int v, int64_t j, auto ending) {
      dy[v] = fetch<size>(in.dy + begin + j, ending);
      x[v] = fetch<size>(in.x + begin + j, ending);
      if constexpr (holds_past)
        if (in.residual != nullptr) past[v] = fetch<size>(in.residual + begin + j, ending);
    });
  }
  __device__ A h_of(int v, int k) const { return (widen(x[v].x[k]) - mean) * inverse; }
  /// Sums of w and of w h, of this thread.
  __device__ Pair<A> sums(const NormRows<T>& in, int64_t cols) const {
    Group<A, size> of_w{}, of_wh{};
    walk(cols, [&](int v, int64_t j, auto ending) {
      const auto gain = load<size>(in.gain + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) {
        const A w = widen(dy[v].x[k]) * gain.x[k];  // zero beyond the row's end
        of_w.x[k] += w;
        of_wh.x[k] = multiply_add(w, h_of(v, k), of_wh.x[k]);
      }
    });
    return {sum_of(of_w), sum_of(of_wh)};
  }
  /// Writes dx, and adds to the sums of columns; to those of the residual if `sums_past`.
  template <bool sums_past>
  __device__ void finish(const NormRows<T>& in, int64_t row, int64_t cols, Pair<A> means,
                         Group<A, size>* scaled, Group<A, size>* plain, Group<A, size>* past_sum) {
    const int64_t begin = row * in.shape.cols;
    walk(cols, [&](int v, int64_t j, auto ending) {
      const auto gain = load<size>(in.gain + j, ending);
      const int held = holds_past ? v : 0;
      if constexpr (!holds_past)
        if (sums_past || in.residual != nullptr) past[0] = fetch<size>(in.residual + begin + j, ending);
      Group<A, size> d;
#pragma unroll
      for (int k = 0; k < size; ++k) {
        const A own = widen(dy[v].x[k]), h = h_of(v, k);
        d.x[k] = (own * gain.x[k] - means.a - h * means.b) * inverse;
        if (sums_past || in.residual != nullptr) {
          const A added = widen(past[held].x[k]);
          d.x[k] = added + d.x[k];
          if constexpr (sums_past) past_sum[v].x[k] += added;
        }
        plain[v].x[k] += own;
        scaled[v].x[k] = multiply_add(own, h, scaled[v].x[k]);
      }
      store(in.dx + begin + j, d, ending);
    });
  }
};

/// With h = (x - mean) r and w = dy gain: dx = residual + r (w - mean(w) - h mean(w h)), where rms has no
/// mean(w); sums of chunks: dy h, dy and residual. Teams take every n-th row of a chunk, and are added in
/// order.
template <class T, bool wide, bool sums_past>
__global__ void __launch_bounds__(most_threads)
    norm_backward_chunks(NormRows<T> in, NormSums<Wide<T>> out, int threads) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  __shared__ Pair<A> of_warps[2]
                             [most_warps];  // in turn: whoever is ahead does not overwrite what others read
  __shared__ A of_team[summed_groups * size][least_threads];
  const RowParts& shape = in.shape;
  const int64_t part = out.first_part + blockIdx.y, chunk = blockIdx.x, cols = shape.cols;
  const int64_t of_sample = rows_of_part(shape, part), all = shape.samples * of_sample,
                each = chunk_rows(all), last = (chunk + 1) * each < all ? (chunk + 1) * each : all;
  if (chunk * each >= all) return;
  const int team = static_cast<int>(threadIdx.x) / threads, teams = static_cast<int>(blockDim.x) / threads;
  HeldRow<T, wide, wide && !sums_past> held;
  held.rank = static_cast<int>(threadIdx.x) % threads;
  held.threads = threads;
  Group<A, size> scaled[summed_groups]{}, plain[summed_groups]{}, past[sums_past ? summed_groups : 1]{};
  int turn = 0;
  const int rows = static_cast<int>(last - chunk * each);
  for (int first = 0; first < rows; first += teams, turn = 1 - turn) {
    const bool there = first + team < rows;  // a team without a row takes part in sums all the same
    const int64_t t = chunk * each + (there ? first + team : rows - 1), here = there ? cols : 0;
    const int64_t sample = quotient(t, of_sample),
                  row = sample * shape.rows + part * shape.rows / shape.parts + t - sample * of_sample;
    held.take(in, row, here);
    const Pair<A> sums = join_team(held.sums(in, here), threads, of_warps[turn], Sum{});
    const A width = static_cast<A>(cols);
    held.template finish<sums_past>(in, row, here, {in.rms ? A(0) : sums.a / width, sums.b / width}, scaled,
                                    plain, past);
  }
  const int64_t at = (static_cast<int64_t>(blockIdx.y) * out.chunks + chunk) * cols;
  const auto add_teams = [&](Group<A, size>* sum, A* to) {
    if (teams > 1) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < summed_groups * size; ++i) of_team[i][threadIdx.x] = sum[i / size].x[i % size];
      __syncthreads();
    }
    if (team != 0) return;
    for (int other = 1; other < teams; ++other)
#pragma unroll
      for (int i = 0; i < summed_groups * size; ++i)
        sum[i / size].x[i % size] += of_team[i][other * threads + held.rank];
    held.walk(cols, [&](int v, int64_t j, auto ending) { store(to + at + j, sum[v], ending); });
  };
  add_teams(scaled, out.scaled);
  if (out.plain != nullptr) add_teams(plain, out.plain);
  if constexpr (sums_past) add_teams(past, out.past);
}

template <class T>
void start(const NormBackwardCall& call, const RowParts& shape, void* workspace, std::size_t bytes,
           cudaStream_t stream) {
  const NormRows<T> in{call.rms,
                       static_cast<const T*>(call.dy),
                       static_cast<const T*>(call.x),
                       static_cast<const T*>(call.gain),
                       static_cast<const Wide<T>*>(call.statistics),
                       static_cast<const T*>(call.residual),
                       static_cast<T*>(call.dx),
                       shape};
  const int threads = team_of(shape.cols, lanes<T>),
            block = threads < least_threads ? least_threads : threads;
  NormChunks all{{}, {static_cast<float*>(call.dgain)}, 1, most_chunks_of(shape)};
  for (void* total : {call.doffset, call.dbias})
    if (total != nullptr) all.totals[all.outputs++] = static_cast<float*>(total);
  const int64_t one = all.chunks * shape.cols,
                fitting = static_cast<int64_t>(bytes / sizeof(float)) / (all.outputs * one);
  const bool wide = aligned(call.dy, call.x, call.gain, call.residual, call.dx) && whole_rows<T>(shape.cols);
  for (int64_t first = 0; first < shape.parts; first += fitting) {
    const int64_t parts = shape.parts - first < fitting ? shape.parts - first : fitting;
    for (int i = 0; i < all.outputs; ++i) all.sums[i] = static_cast<float*>(workspace) + i * parts * one;
    const NormSums<float> out{all.sums[0], call.doffset == nullptr ? nullptr : all.sums[1],
                              call.dbias == nullptr ? nullptr : all.sums[all.outputs - 1], first, all.chunks};
    const auto with = [&](auto kernel) {
      launch(stream, Grid{all.chunks, block, parts}, kernel, in, out, threads);
    };
    if (call.dbias != nullptr)
      with(wide ? norm_backward_chunks<T, true, true> : norm_backward_chunks<T, false, true>);
    else with(wide ? norm_backward_chunks<T, true, false> : norm_backward_chunks<T, false, false>);
    add_norm_chunks(all, shape, first, parts, stream);
  }
}

}  // namespace

void norm_backward(int type, const NormBackwardCall& call, const RowParts& shape, void* workspace,
                   std::size_t bytes, cudaStream_t stream) {
  const int64_t rows = shape.samples * shape.rows;
  if (rows == 0 || shape.cols == 0) return;
  if (shape.cols > most_norm_columns(type)) {
    norm_backward_parameters(type, call.dy, call.x, call.statistics, call.dgain, call.doffset, shape,
                             workspace, bytes, stream);
    if (call.dbias != nullptr) column_sums(type, call.residual, call.dbias, shape, workspace, bytes, stream);
    norm_backward_input(type, call.rms, call.dy, call.x, call.gain, call.statistics, call.residual, call.dx,
                        rows, shape.cols, stream);
  } else if (type == 2) {
    start<bf16>(call, shape, workspace, bytes, stream);
  } else {
    start<float>(call, shape, workspace, bytes, stream);
  }
}

}  // namespace mindpipe::cuda
