#include "operations/picks.h"

#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"

namespace mindpipe::cuda {
namespace {

/// Bits of elements are copied, whatever they mean.
template <class Bits>
__global__ void pick_row_groups(const Bits* x, const std::int32_t* rows, PickCall call, Bits* y, bool wide) {
  constexpr int size = lanes<Bits>;
  for_row_group<size>(call.samples * call.picked, call.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t row = rows[n];
    alignas(16) Bits raw[size] = {};
    if (row >= 0 && row < call.rows)
      move<size>(x + (quotient(n, call.picked) * call.rows + row) * call.cols + j, raw, ending);
    write<size>(raw, y + n * call.cols + j, ending);
  });
}

/// A thread looks through the sample's list for its row and adds what was picked there, in order.
template <class T>
__global__ void put_row_groups(const T* dy, const std::int32_t* rows, PickCall call, T* dx, bool wide) {
  constexpr int size = lanes<T>;
  for_row_group<size>(call.samples * call.rows, call.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t sample = quotient(n, call.rows), row = call.first + n - sample * call.rows,
                  list = sample * call.picked;
    Group<Wide<T>, size> sum{};
    bool found = false;
    for (int64_t i = list; i < list + call.picked; ++i) {
      if (rows[i] != row) continue;
      const auto d = load<size>(dy + i * call.cols + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] = found ? sum.x[k] + d.x[k] : d.x[k];
      found = true;
    }
    store(dx + n * call.cols + j, sum, ending);
  });
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const PickRowsOperands& o) {
  const PickCall call = o.checked();
  const auto with = [&]<class Bits>(Bits) {
    launch(stream(), grid_of_row_groups(call.samples * call.picked, call.cols, lanes<Bits>),
           pick_row_groups<Bits>, o.x.data, o.rows.as<std::int32_t>(), call, o.y.data,
           aligned(o.x.data, o.y.data) && whole_rows<Bits>(call.cols));
  };
  const std::size_t size = bytes_of(o.x.dtype);
  if (size == 2) with(std::uint16_t{});
  else if (size == 4) with(std::uint32_t{});
  else with(std::uint64_t{});
}

void GpuOperations::run(const PutRowsOperands& o) {
  const PickCall call = o.checked();
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(call.samples * call.rows, call.cols, lanes<T>), put_row_groups<T>,
           o.dy.data, o.rows.as<std::int32_t>(), call, o.dx.data,
           aligned(o.dy.data, o.dx.data) && whole_rows<T>(call.cols));
  });
}

}  // namespace mindpipe
