#include "step_kernels.h"

namespace mindpipe::bench {
namespace {

/// Windows on pictures: depthwise convolutions and pools, both ways.
std::vector<Kernel> windows_of(const Sizes& s, const PixelWindow& w) {
  const Shape shape{s.samples, w.pixels(), s.width};
  const std::string text = fmt::format("{} x {} x {} x {}", s.samples, w.height, w.width, s.width);
  const DType dtype = s.dtype;
  const double one = of(shape.count()) * element(dtype), bytes = of(shape.count());
  const auto depthwise = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), taps = memory.normal({w.taps(), s.width}, dtype),
               y = memory.empty(shape, dtype);
    return [=, &memory](int i) { memory.backend().pixel_depthwise({x[i], taps[i], w, y[i]}); };
  };
  const auto depthwise_input = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal(shape, dtype), taps = memory.normal({w.taps(), s.width}, dtype),
               dx = memory.empty(shape, dtype);
    return [=, &memory](int i) {
      memory.backend().pixel_depthwise_backward_input({dy[i], taps[i], w, dx[i]});
    };
  };
  const auto depthwise_weight = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal(shape, dtype), x = memory.normal(shape, dtype),
               parts = memory.empty({pixel_chunks(s.samples * w.windows()), w.taps(), s.width}, DType::f32);
    return [=, &memory](int i) {
      memory.backend().pixel_depthwise_backward_weight({dy[i], x[i], w, parts[i]});
    };
  };
  const auto pool = [=](PoolKind kind) {
    return [=](Footprint& memory) -> Call {
      const Many x = memory.normal(shape, dtype), y = memory.empty(shape, dtype),
                 chosen = memory.empty(shape, DType::u8);
      return [=, &memory](int i) { memory.backend().pool({kind, x[i], w, y[i], chosen[i]}); };
    };
  };
  const auto pool_backward = [=](PoolKind kind) {
    return [=](Footprint& memory) -> Call {
      const Many dy = memory.normal(shape, dtype), dx = memory.empty(shape, dtype),
                 chosen = memory.empty(shape, DType::u8);
      return [=, &memory](int i) { memory.backend().pool_backward({kind, dy[i], chosen[i], w, dx[i]}); };
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
  const auto moments = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), parts = memory.empty({pixel_chunks(rows), 2, c}, DType::f32);
    return [=, &memory](int i) { memory.backend().batch_moments({x[i], parts[i]}); };
  };
  const auto forward = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), statistics = memory.constant({3, c}, DType::f32, 1),
               gain = memory.normal({c}, dtype), y = memory.empty(shape, dtype);
    return [=, &memory](int i) {
      memory.backend().batch_norm({x[i], statistics[i], gain[i], gain[i], true, y[i]});
    };
  };
  const auto sums = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), dy = memory.normal(shape, dtype),
               statistics = memory.constant({3, c}, DType::f32, 1), gain = memory.normal({c}, dtype),
               parts = memory.empty({pixel_chunks(rows), 2, c}, DType::f32);
    return [=, &memory](int i) {
      memory.backend().batch_norm_backward_sums(
          {dy[i], x[i], statistics[i], gain[i], gain[i], true, parts[i]});
    };
  };
  const auto input = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), dy = memory.normal(shape, dtype),
               dx = memory.empty(shape, dtype), statistics = memory.constant({3, c}, DType::f32, 1),
               gain = memory.normal({c}, dtype), total = memory.constant({2, c}, DType::f32, 1);
    return [=, &memory](int i) {
      memory.backend().batch_norm_backward_input(
          {dy[i], x[i], statistics[i], gain[i], gain[i], total[i], true, {}, dx[i]});
    };
  };
  const auto global = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), y = memory.empty({s.samples, c}, dtype);
    return [=, &memory](int i) { memory.backend().global_pool({x[i], y[i]}); };
  };
  const auto global_backward = [=](Footprint& memory) -> Call {
    const Many dx = memory.empty(shape, dtype), dy = memory.normal({s.samples, c}, dtype);
    return [=, &memory](int i) { memory.backend().global_pool_backward({dy[i], dx[i]}); };
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
