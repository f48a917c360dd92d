#include "product_contenders.h"

#include <cblas.h>
#include <fmt/format.h>

#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>

namespace mindpipe::bench {
namespace {

bool is(const Shape3& s, std::string_view form) { return s.form == form; }

Product product_of(const Shape3& s, const Operands& o, bool bf16, std::int64_t weight) {
  const std::int64_t first = weight * o.weight_size;
  void* x = bf16 ? static_cast<void*>(o.x_half.data()) : o.x.data();
  void* w = bf16 ? static_cast<void*>(o.w_half.data() + first) : o.w.data() + first;
  void* y = bf16 ? static_cast<void*>(o.y_half.data()) : o.y.data();
  if (is(s, "forward"))
    return {.a = {x, s.k, false, bf16},
            .b = {w, s.k, false, bf16},
            .rows = s.n,
            .cols = s.m,
            .depth = s.k,
            .c = {y, bf16}};
  if (is(s, "input"))
    return {.a = {y, s.m, false, bf16},
            .b = {w, s.k, true, bf16},
            .rows = s.n,
            .cols = s.k,
            .depth = s.m,
            .c = {x, bf16},
            .backward = true};
  return {.a = {y, s.m, true, bf16},
          .b = {x, s.k, true, bf16},
          .rows = s.m,
          .cols = s.k,
          .depth = s.n,
          .c = {o.w.data(), false},
          .backward = true,
          .accumulate = true};
}

void openblas(const Shape3& s, const Operands& o, std::int64_t weight) {
  const int n = static_cast<int>(s.n), k = static_cast<int>(s.k), m = static_cast<int>(s.m);
  float* w = o.w.data() + weight * o.weight_size;
  if (is(s, "forward"))
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, m, k, 1, o.x.data(), k, w, k, 0, o.y.data(), m);
  else if (is(s, "input"))
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, k, m, 1, o.y.data(), m, w, k, 0, o.x.data(), k);
  else
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, k, n, 1, o.y.data(), m, o.x.data(), k, 1, w, k);
}

/// A oneDNN product of the same operands, created once.
std::function<void(std::int64_t)> onednn(const Shape3& s, const Operands& o, bool bf16) {
  using namespace dnnl;
  const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const bool weight = is(s, "weight");
  const auto plain = [&](std::int64_t r, std::int64_t c, memory::data_type t) {
    return memory::desc({r, c}, t, memory::dims{c, 1});
  };
  const auto turned = [&](std::int64_t r, std::int64_t c, memory::data_type t) {
    return memory::desc({r, c}, t, memory::dims{1, r});
  };
  const Product p = product_of(s, o, bf16, 0);
  const auto a = weight ? turned(s.m, s.n, type) : plain(p.rows, p.depth, type);
  const auto b = is(s, "forward") ? turned(p.depth, p.cols, type) : plain(p.depth, p.cols, type);
  const auto c = plain(p.rows, p.cols, weight ? memory::data_type::f32 : type);
  primitive_attr attributes;
  if (weight) {
    post_ops ops;
    ops.append_sum(1.0f);
    attributes.set_post_ops(ops);
  }
  const engine cpu(engine::kind::cpu, 0);
  auto matmul_of = std::make_shared<matmul>(matmul::primitive_desc(matmul::desc(a, b, c), attributes, cpu));
  auto queue = std::make_shared<stream>(cpu);
  std::vector<std::unordered_map<int, memory>> arguments;
  for (std::int64_t i = 0; i < s.weights; ++i) {
    const Product here = product_of(s, o, bf16, i);
    arguments.push_back({{DNNL_ARG_SRC, memory(a, cpu, const_cast<void*>(here.a.data))},
                         {DNNL_ARG_WEIGHTS, memory(b, cpu, const_cast<void*>(here.b.data))},
                         {DNNL_ARG_DST, memory(c, cpu, here.c.data)}});
  }
  return [=](std::int64_t i) {
    matmul_of->execute(*queue, arguments[static_cast<std::size_t>(i)]);
    queue->wait();
  };
}

void fill(const Block<float>& full, const Block<std::uint16_t>& half, std::int64_t count) {
  RandomNumbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    full.data()[i] = numbers.next();
    half.data()[i] = upper_half(full.data()[i]);
  }
}

}  // namespace

std::string name_of(const Shape3& s) {
  return fmt::format("{:8} n={:<5} k={:<5} m={:<5}{}", s.form, s.n, s.k, s.m, s.weights > 1 ? " cold" : "");
}

std::int64_t weights_beyond_caches(std::int64_t k, std::int64_t m) {
  return std::max<std::int64_t>(1, (std::int64_t{256} << 20) / (2 * k * m));
}

Operands::Operands(const Shape3& s)
    : weight_size(s.m * s.k),
      x(s.n * s.k),
      w(s.weights * weight_size),
      y(s.n * s.m),
      x_half(s.n * s.k),
      w_half(s.weights * weight_size),
      y_half(s.n * s.m) {
  fill(x, x_half, s.n * s.k);
  fill(w, w_half, s.weights * weight_size);
  fill(y, y_half, s.n * s.m);
}

std::vector<Contender> contenders_for(const Shape3& s, const Operands& o, const Ours& ours) {
  const auto of_ours = [&s, &o, &ours](bool bf16) {
    return [&s, &o, &ours, bf16](std::int64_t weight) {
      run_product(bf16 ? ours.half_kernels : ours.kernels, product_of(s, o, bf16, weight), 1,
                  ours.workspace.data());
    };
  };
  return {{"ours", of_ours(false), {}},
          {"openblas", [&s, &o](std::int64_t weight) { openblas(s, o, weight); }, {}},
          {"onednn", onednn(s, o, false), {}},
          {"ours_bf16", of_ours(true), {}},
          {"onednn_bf16", onednn(s, o, true), {}}};
}

}  // namespace mindpipe::bench
