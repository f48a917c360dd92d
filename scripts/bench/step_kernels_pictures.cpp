#include "step_kernels.h"

namespace mindpipe::bench {
namespace {

/// Windows on pictures: depthwise convolutions and pools, both ways.
std::vector<Kernel> windows_of(const Sizes& s, const PixelWindow& w) {
  const Shape shape{s.samples, w.pixels(), s.width};
  const std::string text = fmt::format("{} x {} x {} x {}", s.samples, w.height, w.width, s.width);
  const DType dtype = s.dtype;
  const double one = of(shape.count()) * element(dtype), bytes = of(shape.count());
  const auto depthwise = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), taps = room.normal({w.taps(), s.width}, dtype),
               y = room.empty(shape, dtype);
    return [=, &room](int i) { room.backend().pixel_depthwise({x[i], taps[i], w, y[i]}); };
  };
  const auto depthwise_input = [=](Footprint& room) -> Call {
    const Many dy = room.normal(shape, dtype), taps = room.normal({w.taps(), s.width}, dtype),
               dx = room.empty(shape, dtype);
    return [=, &room](int i) { room.backend().pixel_depthwise_backward_input({dy[i], taps[i], w, dx[i]}); };
  };
  const auto depthwise_weight = [=](Footprint& room) -> Call {
    const Many dy = room.normal(shape, dtype), x = room.normal(shape, dtype),
               parts = room.empty({pixel_chunks(s.samples * w.windows()), w.taps(), s.width}, DType::f32);
    return [=, &room](int i) { room.backend().pixel_depthwise_backward_weight({dy[i], x[i], w, parts[i]}); };
  };
  const auto pool = [=](PoolKind kind) {
    return [=](Footprint& room) -> Call {
      const Many x = room.normal(shape, dtype), y = room.empty(shape, dtype),
                 chosen = room.empty(shape, DType::u8);
      return [=, &room](int i) { room.backend().pool({kind, x[i], w, y[i], chosen[i]}); };
    };
  };
  const auto pool_backward = [=](PoolKind kind) {
    return [=](Footprint& room) -> Call {
      const Many dy = room.normal(shape, dtype), dx = room.empty(shape, dtype),
                 chosen = room.empty(shape, DType::u8);
      return [=, &room](int i) { room.backend().pool_backward({kind, dy[i], chosen[i], w, dx[i]}); };
    };
  };
  return {{"depthwise", text, 1, 0, 2 * one, depthwise},
          {"depthwise input", text, 1, 0, 2 * one, depthwise_input},
          {"depthwise weight", text, 1, 0, 2 * one, depthwise_weight},
          {"average pool", text, 1, 0, 2 * one, pool(PoolKind::average)},
          {"average pool backward", text, 1, 0, 2 * one, pool_backward(PoolKind::average)},
          {"max pool", text, 1, 0, 2 * one + bytes, pool(PoolKind::maximum)},
          {"max pool backward", text, 1, 0, 2 * one + bytes, pool_backward(PoolKind::maximum)}};
}

/// Batch norm and the mean over a picture.
std::vector<Kernel> norms_of_pictures(const Sizes& s, std::int64_t pixels) {
  const Shape shape{s.samples, pixels, s.width};
  const std::int64_t rows = s.samples * pixels, c = s.width;
  const std::string text = fmt::format("{} x {}", rows, c);
  const DType dtype = s.dtype;
  const double one = of(shape.count()) * element(dtype);
  const auto moments = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), parts = room.empty({pixel_chunks(rows), 2, c}, DType::f32);
    return [=, &room](int i) { room.backend().batch_moments({x[i], parts[i]}); };
  };
  const auto forward = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), statistics = room.constant({3, c}, DType::f32, 1),
               gain = room.normal({c}, dtype), y = room.empty(shape, dtype);
    return [=, &room](int i) {
      room.backend().batch_norm({x[i], statistics[i], gain[i], gain[i], true, y[i]});
    };
  };
  const auto sums = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), dy = room.normal(shape, dtype),
               statistics = room.constant({3, c}, DType::f32, 1), gain = room.normal({c}, dtype),
               parts = room.empty({pixel_chunks(rows), 2, c}, DType::f32);
    return [=, &room](int i) {
      room.backend().batch_norm_backward_sums({dy[i], x[i], statistics[i], gain[i], gain[i], true, parts[i]});
    };
  };
  const auto input = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), dy = room.normal(shape, dtype), dx = room.empty(shape, dtype),
               statistics = room.constant({3, c}, DType::f32, 1), gain = room.normal({c}, dtype),
               total = room.constant({2, c}, DType::f32, 1);
    return [=, &room](int i) {
      room.backend().batch_norm_backward_input(
          {dy[i], x[i], statistics[i], gain[i], gain[i], total[i], true, {}, dx[i]});
    };
  };
  const auto global = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), y = room.empty({s.samples, c}, dtype);
    return [=, &room](int i) { room.backend().global_pool({x[i], y[i]}); };
  };
  const auto global_backward = [=](Footprint& room) -> Call {
    const Many dx = room.empty(shape, dtype), dy = room.normal({s.samples, c}, dtype);
    return [=, &room](int i) { room.backend().global_pool_backward({dy[i], dx[i]}); };
  };
  return {{"batch moments", text, 1, 0, one, moments},
          {"batch norm", text, 1, 0, 2 * one, forward},
          {"batch norm sums", text, 1, 0, 2 * one, sums},
          {"batch norm backward", text, 1, 0, 3 * one, input},
          {"global pool", text, 1, 0, one, global},
          {"global pool backward", text, 1, 0, one, global_backward}};
}

}  // namespace

std::vector<Kernel> kernels_of_pictures(const Sizes& s, std::int64_t side) {
  const auto extent = static_cast<std::int32_t>(side);
  std::vector<Kernel> all = windows_of(s, {extent, extent, 3, 1, 1});
  for (const Kernel& kernel : norms_of_pictures(s, side * side)) all.push_back(kernel);
  return all;
}

}  // namespace mindpipe::bench
