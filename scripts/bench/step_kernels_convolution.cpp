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
  const auto forward = [=](Footprint& room) -> Call {
    const Many x = room.normal(shape, dtype), weight = room.normal(taps, dtype), y = room.empty(shape, dtype);
    return [=, &room](int i) { room.backend().depthwise({x[i], weight[i], {}, reach, y[i]}); };
  };
  const auto input = [=](Footprint& room) -> Call {
    const Many dy = room.normal(shape, dtype), weight = room.normal(taps, dtype),
               dx = room.empty(shape, dtype);
    return [=, &room](int i) {
      room.backend().depthwise_backward_input({dy[i], weight[i], {}, reach, dx[i]});
    };
  };
  const auto weight = [=](Footprint& room) -> Call {
    const Many dy = room.normal(shape, dtype), x = room.normal(shape, dtype),
               dw = room.constant(taps, DType::f32, 0);
    return [=, &room](int i) { room.backend().depthwise_backward_weight({dy[i], x[i], {}, reach, dw[i]}); };
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
  const auto forward = [=](Footprint& room) -> Call {
    const Many both = room.normal(twice, dtype), y = room.empty(narrow, dtype);
    return [=, &room](int i) { room.backend().gate({both[i], y[i]}); };
  };
  const auto backward = [=](Footprint& room) -> Call {
    const Many dy = room.normal(narrow, dtype), both = room.normal(twice, dtype),
               dboth = room.empty(twice, dtype);
    return [=, &room](int i) { room.backend().gate_backward({dy[i], both[i], dboth[i]}); };
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
