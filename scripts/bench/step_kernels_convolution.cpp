#include "step_kernels.h"

namespace mindpipe::bench {
namespace {

/// Depthwise convolutions of eleven rows, both ways.
std::vector<Kernel> depthwise_of(const Sizes& s) {
  const Reach reach{11, false};
  const std::int64_t n = s.rows(), w = s.width;
  const Shape shape{s.samples, s.sequence, w}, taps{reach.taps, w};
  const std::string text = fmt::format("{} x {}, {} taps", n, w, reach.taps);
  const double one = of(n) * of(w) * element(s.dtype);
  const DType dtype = s.dtype;
  const auto forward = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), weight = memory.normal(taps, dtype),
               y = memory.empty(shape, dtype);
    return [=, &memory](int i) { memory.backend().depthwise({x[i], weight[i], {}, reach, y[i]}); };
  };
  const auto input = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal(shape, dtype), weight = memory.normal(taps, dtype),
               dx = memory.empty(shape, dtype);
    return [=, &memory](int i) {
      memory.backend().depthwise_backward_input({dy[i], weight[i], {}, reach, dx[i]});
    };
  };
  const auto weight = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal(shape, dtype), x = memory.normal(shape, dtype),
               dw = memory.constant(taps, DType::f32, 0);
    return [=, &memory](int i) {
      memory.backend().depthwise_backward_weight({dy[i], x[i], {}, reach, dw[i]});
    };
  };
  return {{"depthwise", text, 0, 0, 2 * one, forward},
          {"depthwise backward", text, 0, 0, 2 * one, input},
          {"depthwise weight", text, 0, 0, 2 * one, weight}};
}

std::vector<Kernel> gates_of(const Sizes& s) {
  const std::int64_t n = s.rows(), w = s.width;
  const Shape narrow{n, w}, twice{n, 2 * w};
  const std::string text = fmt::format("{} x {}", n, w);
  const double one = of(n) * of(w) * element(s.dtype);
  const DType dtype = s.dtype;
  const auto forward = [=](Footprint& memory) -> Call {
    const Many both = memory.normal(twice, dtype), y = memory.empty(narrow, dtype);
    return [=, &memory](int i) { memory.backend().gate({both[i], y[i]}); };
  };
  const auto backward = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal(narrow, dtype), both = memory.normal(twice, dtype),
               dboth = memory.empty(twice, dtype);
    return [=, &memory](int i) { memory.backend().gate_backward({dy[i], both[i], dboth[i]}); };
  };
  return {{"gate", text, 0, 0, 3 * one, forward}, {"gate backward", text, 0, 0, 5 * one, backward}};
}

}  // namespace

std::vector<Kernel> convolutions_of(const Sizes& s) {
  std::vector<Kernel> all = depthwise_of(s);
  for (Kernel& kernel : gates_of(s)) all.push_back(std::move(kernel));
  return all;
}

}  // namespace mindpipe::bench
