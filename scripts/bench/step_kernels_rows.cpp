#include <cmath>

#include "step_kernels.h"

namespace mindpipe::bench {
namespace {

/// Norms and their gradients, with the sum before them.
std::vector<Kernel> norms_of(const Sizes& s) {
  const std::int64_t n = s.rows(), w = s.width;
  const Shape shape{s.samples, s.sequence, w};
  const std::string text = fmt::format("{} x {}", n, w);
  const double one = of(n) * of(w) * element(s.dtype), statistics = 8 * of(n), layers = of(s.layers);
  const DType dtype = s.dtype;
  const SequencePart sequence{.samples = s.samples, .rows = s.sequence, .first = 0, .whole = s.sequence};
  const auto sum_and_norm = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), branch = memory.normal(shape, dtype),
               bias = memory.normal({w}, dtype), gain = memory.normal({w}, dtype),
               y = memory.empty(shape, dtype), sums = memory.empty({n, 2}, DType::f32),
               normed = memory.empty(shape, dtype);
    return [=, &memory](int i) {
      memory.backend().residual_norm({.x = x[i],
                                      .branch = branch[i],
                                      .bias = bias[i],
                                      .sequence = sequence,
                                      .y = y[i],
                                      .kind = NormKind::layer,
                                      .gain = gain[i],
                                      .offset = bias[i],
                                      .epsilon = 1e-5,
                                      .statistics = sums[i],
                                      .normed = normed[i]});
    };
  };
  const auto gradients = [=](Footprint& memory) -> Call {
    const Many x = memory.normal(shape, dtype), dy = memory.normal(shape, dtype),
               gain = memory.normal({w}, dtype), sums = memory.constant({n, 2}, DType::f32, 1),
               dx = memory.normal(shape, dtype), dgain = memory.constant({1, w}, DType::f32, 0),
               doffset = memory.constant({1, w}, DType::f32, 0);
    return [=, &memory](int i) {
      memory.backend().norm_backward(
          {NormKind::layer, dy[i], x[i], gain[i], sums[i], dx[i], dx[i], dgain[i], doffset[i]});
    };
  };
  return {{"residual + norm", text, 2 * layers, 0, 4 * one + statistics, sum_and_norm},
          {"norm backward", text, 2 * layers + 1, 0, 4 * one + statistics, gradients}};
}

Kernel bias_gradient(const Sizes& s, std::int64_t cols, double calls) {
  return {"bias gradient",
          fmt::format("{} x {}", s.rows(), cols),
          calls,
          0,
          of(s.rows()) * of(cols) * element(s.dtype),
          [=](Footprint& memory) -> Call {
            const Many dy = memory.normal({s.samples, s.sequence, cols}, s.dtype),
                       db = memory.constant({1, cols}, DType::f32, 0);
            return [=, &memory](int i) { memory.backend().bias_backward({dy[i], db[i]}); };
          }};
}

/// Tokens in, gradients of the table out.
std::vector<Kernel> embedding_of(const Sizes& s) {
  const std::int64_t n = s.rows(), w = s.width;
  const SequencePart sequence{.samples = s.samples, .rows = s.sequence, .first = 0, .whole = s.sequence};
  const std::string text = fmt::format("{} x {} of {}", n, w, s.vocabulary);
  const double one = of(n) * of(w) * element(s.dtype);
  const auto find = [=](Footprint& memory) -> Call {
    const Many ids = memory.ids(n, s.vocabulary), table = memory.normal({s.vocabulary, w}, s.dtype),
               y = memory.empty({n, w}, s.dtype);
    return [=, &memory](int i) { memory.backend().embedding({ids[i], table[i], 0, y[i]}); };
  };
  const auto gradient = [=](Footprint& memory) -> Call {
    const Many ids = memory.ids(n, s.vocabulary), dy = memory.normal({n, w}, s.dtype),
               dtable = memory.constant({s.vocabulary, w}, DType::f32, 0);
    return [=, &memory](int i) { memory.backend().embedding_backward({ids[i], dy[i], 0, dtable[i]}); };
  };
  const auto positions = [=](Footprint& memory) -> Call {
    const Many dy = memory.normal({s.samples, s.sequence, w}, s.dtype),
               d = memory.constant({s.sequence, w}, DType::f32, 0);
    return [=, &memory](int i) {
      memory.backend().positions_backward(
          {.dy = dy[i], .sequence = sequence, .first_position = 0, .dpositions = d[i]});
    };
  };
  const double touched = of(s.vocabulary) * (1 - std::pow(1 - 1 / of(s.vocabulary), of(n))) *
                         of(w);  // rows that some token names
  return {{"embedding", text, 1, 0, one + touched * element(s.dtype), find},
          {"embedding gradient", text, 1, 0, one + 8 * touched, gradient},
          {"positions gradient", text, 1, 0, one + 8 * of(s.sequence) * of(w), positions}};
}

/// Softmax and its gradient over a chunk of tokens.
std::vector<Kernel> softmax_of(const Sizes& s) {
  const std::int64_t n = std::min(s.token_chunk, s.rows()), m = s.vocabulary;
  const double calls = of(s.rows()) / of(n), logits = of(n) * of(m) * 4;
  const std::string text = fmt::format("{} x {}", n, m);
  return {{"losses, gradient of logits", text, calls, 0, logits + of(n) * of(m) * element(s.dtype),
           [=](Footprint& memory) -> Call {
             const Many x = memory.normal({n, m}, DType::f32), ids = memory.ids(n, m),
                        most = memory.empty({n}, DType::f32), sums = memory.empty({3, n}, DType::f32),
                        losses = memory.empty({n}, DType::f32), d = memory.empty({n, m}, s.dtype);
             return [=, &memory](int i) {
               memory.backend().softmax_cross_entropy(
                   {x[i], m, ids[i], 1, 0, m, most[i], sums[i], losses[i], d[i]});
             };
           }}};
}

}  // namespace

std::vector<Kernel> rows_of(const Sizes& s) {
  std::vector<Kernel> all = norms_of(s);
  for (const auto& [cols, times] :
       {std::pair{s.width, 2}, std::pair{3 * s.width, 1}, std::pair{4 * s.width, 1}})
    all.push_back(bias_gradient(s, cols, of(times * s.layers)));
  for (const auto& more : {embedding_of(s), softmax_of(s)}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace mindpipe::bench
