#include <cmath>

#include "step_kernels.h"

namespace mindpipe::bench {
namespace {

struct Extents {
  std::int64_t n, k, m;
};
std::string text_of(const Extents& e) { return fmt::format("{} x {} x {}", e.n, e.k, e.m); }
double operations(const Extents& e) { return 2 * of(e.n) * of(e.k) * of(e.m); }
double bytes(const Extents& e, DType x, DType w, DType y) {
  return of(e.n) * of(e.k) * element(x) + of(e.k) * of(e.m) * element(w) + of(e.n) * of(e.m) * element(y);
}

/// y[n,m] = activation(x w^T + bias)
Kernel forward(const std::string& name, double calls, const Extents& e, bool bias, Activation activation,
               DType dtype, DType result) {
  const bool kept = activation != Activation::none;
  return {name,
          text_of(e),
          calls,
          operations(e),
          bytes(e, dtype, dtype, result) + (kept ? of(e.n) * of(e.m) * element(result) : 0),
          [=](Footprint& memory) -> Call {
            const Many x = memory.normal({e.n, e.k}, dtype),
                       w = memory.normal({e.m, e.k}, dtype, 1 / std::sqrt(of(e.k))),
                       b = memory.normal({e.m}, dtype), y = memory.empty({e.n, e.m}, result),
                       before = kept ? memory.empty({e.n, e.m}, result) : Many(sets);
            return [=, &memory](int i) {
              memory.backend().linear({x[i], w[i], bias ? b[i] : Tensor{}, activation, before[i], y[i]});
            };
          }};
}
/// dx[n,k] = (dy w) activation'(before)
Kernel input_gradient(const std::string& name, double calls, const Extents& e, Activation activation,
                      DType dtype) {
  const bool kept = activation != Activation::none;
  return {name,
          text_of(e),
          calls,
          operations(e),
          bytes(e, dtype, dtype, dtype) + (kept ? of(e.n) * of(e.k) * element(dtype) : 0),
          [=](Footprint& memory) -> Call {
            const Many dy = memory.normal({e.n, e.m}, dtype),
                       w = memory.normal({e.m, e.k}, dtype, 1 / std::sqrt(of(e.m))),
                       dx = memory.empty({e.n, e.k}, dtype),
                       before = kept ? memory.normal({e.n, e.k}, dtype) : Many(sets);
            return [=, &memory](int i) {
              memory.backend().linear_backward_input(
                  {.dy = dy[i], .w = w[i], .activation = activation, .before = before[i], .dx = dx[i]});
            };
          }};
}
/// dw[m,k] += dy^T x: what it adds to is read and written
Kernel weight_gradient(const std::string& name, double calls, const Extents& e, DType dtype) {
  return {name,
          text_of(e),
          calls,
          operations(e),
          bytes(e, dtype, DType::f32, dtype) + of(e.k) * of(e.m) * 4,
          [=](Footprint& memory) -> Call {
            const Many dy = memory.normal({e.n, e.m}, dtype), x = memory.normal({e.n, e.k}, dtype),
                       dw = memory.constant({e.m, e.k}, DType::f32, 0);
            return [=, &memory](int i) { memory.backend().linear_backward_weight({dy[i], x[i], dw[i]}); };
          }};
}

}  // namespace

std::vector<Kernel> products_of(const Sizes& s) {
  const std::int64_t n = s.rows(), w = s.width, chunk = std::min(s.token_chunk, n);
  const double layers = of(s.layers), chunks = of(n) / of(chunk);
  const Extents qkv{n, w, 3 * w}, output{n, w, w}, up{n, w, 4 * w}, down{n, 4 * w, w},
      head{chunk, w, s.vocabulary};
  return {forward("qkv", layers, qkv, true, Activation::none, s.dtype, s.dtype),
          forward("attention's output", layers, output, false, Activation::none, s.dtype, s.dtype),
          forward("mlp up, gelu", layers, up, true, Activation::gelu, s.dtype, s.dtype),
          forward("mlp down", layers, down, false, Activation::none, s.dtype, s.dtype),
          forward("logits", chunks, head, false, Activation::none, s.dtype, DType::f32),
          input_gradient("qkv, dx", layers, qkv, Activation::none, s.dtype),
          input_gradient("attention's output, dx", layers, output, Activation::none, s.dtype),
          input_gradient("mlp up, dx", layers, up, Activation::none, s.dtype),
          input_gradient("mlp down, dx, gelu", layers, down, Activation::gelu, s.dtype),
          input_gradient("logits, dx", chunks, head, Activation::none, s.dtype),
          weight_gradient("qkv, dw", layers, qkv, s.dtype),
          weight_gradient("attention's output, dw", layers, output, s.dtype),
          weight_gradient("mlp up, dw", layers, up, s.dtype),
          weight_gradient("mlp down, dw", layers, down, s.dtype),
          weight_gradient("logits, dw", chunks, head, s.dtype)};
}

}  // namespace mindpipe::bench
