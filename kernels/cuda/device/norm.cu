#include "cuda/device/norm_kernels.h"

#include "cuda/device/residual.h"
#include "cuda/device/row_team.h"

/// Norms by teams of threads, a row each. As plain loops: `norm` and others in tests/kernels/reference.h.
namespace mindpipe::cuda {
namespace {

/// Where the rows of a norm come from: memory, or a sum that is written on the way. `fetch_at` asks memory,
/// `first` makes numbers of the answer, and `again` reads what `first` gave, by the same thread.
template <class T>
struct StoredRows {
  template <int size>
  using Fetched = Raw<T, size>;
  const T* x;
  int64_t cols;
  template <int size, class Ending>
  __device__ Raw<T, size> fetch_at(int64_t n, int64_t j, Ending ending) const {
    return fetch<size>(x + n * cols + j, ending);
  }
  template <int size, class Ending>
  __device__ Group<Wide<T>, size> first(const Raw<T, size>& fetched, int64_t, int64_t, Ending) const {
    return widened(fetched);
  }
  template <int size, class Ending>
  __device__ Group<Wide<T>, size> again(int64_t n, int64_t j, Ending ending) const {
    return load<size>(x + n * cols + j, ending);
  }
};
template <class T>
struct SummedRows {
  template <int size>
  using Fetched = typename Residual<T>::template Fetched<size>;
  Residual<T> residual;
  template <int size, class Ending>
  __device__ Fetched<size> fetch_at(int64_t n, int64_t j, Ending ending) const {
    return residual.template fetch_at<size>(n, j, ending);
  }
  template <int size, class Ending>
  __device__ Group<Wide<T>, size> first(const Fetched<size>& fetched, int64_t n, int64_t j,
                                        Ending ending) const {
    return residual.template sum_at<size>(fetched, n, j, ending);
  }
  template <int size, class Ending>
  __device__ Group<Wide<T>, size> again(int64_t n, int64_t j, Ending ending) const {
    return load<size>(residual.y + n * residual.mask.cols + j, ending);
  }
};

template <class T>
struct NormPart {
  bool rms;
  const T *gain, *offset;
  Wide<T> epsilon;
  Wide<T>* statistics;
  T* y;
  int64_t rows, cols;
};

/// mean = sum x / cols (0 for rms), variance = sum (x - mean)^2 / cols, y = (x - mean) / sqrt(variance +
/// epsilon) gain + offset. The row stays in registers between the passes; where it does not fit, it is read
/// again.
template <class T, bool in_registers, class Rows>
__global__ void __launch_bounds__(most_threads) norm_rows(Rows rows, NormPart<T> norm, int threads) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  __shared__ A of_warps[2][most_warps];
  const Team team(threads, norm.rows);
  const A cols = static_cast<A>(norm.cols);
  typename Rows::template Fetched<size> fetched[in_registers ? held_groups : 1];
  Group<A, size> row[in_registers ? held_groups : 1], total{};
  const auto fetch_group = [&](int v, int64_t j, auto ending) {
    fetched[v] = rows.template fetch_at<size>(team.row, j, ending);
  };
  if constexpr (in_registers) team.walk<in_registers, size>(norm.cols, fetch_group);
  team.walk<in_registers, size>(norm.cols, [&](int v, int64_t j, auto ending) {
    if constexpr (!in_registers) fetch_group(v, j, ending);
    row[v] = rows.template first<size>(fetched[v], team.row, j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) total.x[k] += row[v].x[k];
  });
  const A sum = join_team(sum_of(total), threads, of_warps[0], Sum{}), mean = norm.rms ? A(0) : sum / cols;
  const auto read = [&](int v, int64_t j, auto ending) {
    if constexpr (in_registers) return row[v];
    else return rows.template again<size>(team.row, j, ending);
  };
  total = {};
  team.walk<in_registers, size>(norm.cols, [&](int v, int64_t j, auto ending) {
    const auto x = read(v, j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      const A d = there(ending, k) ? x.x[k] - mean : A(0);
      total.x[k] = multiply_add(d, d, total.x[k]);
    }
  });
  const A inverse =
      A(1) / square_root(join_team(sum_of(total), threads, of_warps[1], Sum{}) / cols + norm.epsilon);
  if (team.there && team.rank == 0) {
    norm.statistics[2 * team.row] = mean;
    norm.statistics[2 * team.row + 1] = inverse;
  }
  team.walk<in_registers, size>(norm.cols, [&](int v, int64_t j, auto ending) {
    auto x = read(v, j, ending);
    const auto gain = load<size>(norm.gain + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) x.x[k] = (x.x[k] - mean) * inverse;
    if (norm.offset != nullptr) {
      const auto offset = load<size>(norm.offset + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) x.x[k] = multiply_add(x.x[k], gain.x[k], offset.x[k]);
    } else {
#pragma unroll
      for (int k = 0; k < size; ++k) x.x[k] = x.x[k] * gain.x[k];
    }
    store(norm.y + team.row * norm.cols + j, x, ending);
  });
}

template <class T>
struct NormGradient {
  bool rms;
  const T *dy, *x, *gain;
  const Wide<T>* statistics;
  const T* residual;
  T* dx;
  int64_t rows, cols;
};

/// With h = (x - mean) r and w = dy gain: dx = residual + r (w - mean(w) - h mean(w h)); rms has no mean(w)
template <class T, bool in_registers>
__global__ void __launch_bounds__(most_threads) norm_gradient_rows(NormGradient<T> norm, int threads) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  __shared__ Pair<A> of_warps[most_warps];
  const Team team(threads, norm.rows);
  const A mean = team.there ? norm.statistics[2 * team.row] : A(0),
          inverse = team.there ? norm.statistics[2 * team.row + 1] : A(0);
  const int64_t begin = team.row * norm.cols;
  constexpr int groups = in_registers ? held_groups : 1;
  Raw<T, size> dy[groups], x[groups], past[groups];
  Group<A, size> w[groups], h[groups], plain{}, crossed{};
  const auto fetch_group = [&](int v, int64_t j, auto ending) {
    dy[v] = fetch<size>(norm.dy + begin + j, ending);
    x[v] = fetch<size>(norm.x + begin + j, ending);
    if (norm.residual != nullptr) past[v] = fetch<size>(norm.residual + begin + j, ending);
  };
  const auto widen_group = [&](int v, int64_t j, auto ending) {
    w[v] = widened(dy[v]);
    h[v] = widened(x[v]);
    const auto gain = load<size>(norm.gain + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      w[v].x[k] *= gain.x[k];  // zero beyond the row's end
      h[v].x[k] = (h[v].x[k] - mean) * inverse;
    }
  };
  if constexpr (in_registers) team.walk<in_registers, size>(norm.cols, fetch_group);
  team.walk<in_registers, size>(norm.cols, [&](int v, int64_t j, auto ending) {
    if constexpr (!in_registers) fetch_group(v, j, ending);
    widen_group(v, j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      plain.x[k] += w[v].x[k];
      crossed.x[k] = multiply_add(w[v].x[k], h[v].x[k], crossed.x[k]);
    }
  });
  const Pair<A> sums = join_team(Pair<A>{sum_of(plain), sum_of(crossed)}, threads, of_warps, Sum{});
  const A cols = static_cast<A>(norm.cols), mean_plain = norm.rms ? A(0) : sums.a / cols,
          mean_crossed = sums.b / cols;
  team.walk<in_registers, size>(norm.cols, [&](int v, int64_t j, auto ending) {
    if constexpr (!in_registers) {
      fetch_group(v, j, ending);
      widen_group(v, j, ending);
    }
    Group<A, size> d;
#pragma unroll
    for (int k = 0; k < size; ++k) d.x[k] = (w[v].x[k] - mean_plain - h[v].x[k] * mean_crossed) * inverse;
    if (norm.residual != nullptr) {
      const auto before = widened(past[v]);
#pragma unroll
      for (int k = 0; k < size; ++k) d.x[k] = before.x[k] + d.x[k];
    }
    store(norm.dx + begin + j, d, ending);
  });
}

template <class T>
NormPart<T> part_of(const NormCall& call) {
  return {call.rms,
          static_cast<const T*>(call.gain),
          static_cast<const T*>(call.offset),
          static_cast<Wide<T>>(call.epsilon),
          static_cast<Wide<T>*>(call.statistics),
          static_cast<T*>(call.y),
          call.rows,
          call.cols};
}

template <class T, class Rows>
void start(const Rows& rows, const NormCall& call, bool wide, cudaStream_t stream) {
  const TeamShape team = team_for(call.cols, lanes<T>);
  const Grid grid = grid_of_teams(call.rows, team);
  if constexpr (sizeof(T) < 8) {
    if (wide && held(call.cols, lanes<T>))
      return launch(stream, grid, norm_rows<T, true, Rows>, rows, part_of<T>(call), team.threads);
  }
  launch(stream, grid, norm_rows<T, false, Rows>, rows, part_of<T>(call), team.threads);
}

}  // namespace

void norm(int type, const void* x, const NormCall& call, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    start<T>(StoredRows<T>{static_cast<const T*>(x), call.cols}, call,
             aligned(x, call.gain, call.offset, call.y), stream);
  });
}

void residual_norm(int type, const void* x, const void* branch, const void* bias, const MaskRows& mask,
                   void* sum, const NormCall& call, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    const Residual<T> residual{static_cast<const T*>(x), static_cast<const T*>(branch),
                               static_cast<const T*>(bias), mask, static_cast<T*>(sum)};
    start<T>(SummedRows<T>{residual}, call, aligned(x, branch, bias, sum, call.gain, call.offset, call.y),
             stream);
  });
}

void norm_backward_input(int type, bool rms, const void* dy, const void* x, const void* gain,
                         const void* statistics, const void* residual, void* dx, int64_t rows, int64_t cols,
                         cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    const NormGradient<T> norm{rms,
                               static_cast<const T*>(dy),
                               static_cast<const T*>(x),
                               static_cast<const T*>(gain),
                               static_cast<const Wide<T>*>(statistics),
                               static_cast<const T*>(residual),
                               static_cast<T*>(dx),
                               rows,
                               cols};
    const TeamShape team = team_for(cols, lanes<T>);
    if constexpr (sizeof(T) < 8) {
      if (aligned(dy, x, gain, residual, dx) && held(cols, lanes<T>))
        return launch(stream, grid_of_teams(rows, team), norm_gradient_rows<T, true>, norm, team.threads);
    }
    launch(stream, grid_of_teams(rows, team), norm_gradient_rows<T, false>, norm, team.threads);
  });
}

}  // namespace mindpipe::cuda
