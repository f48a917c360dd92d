#include "step_kernels.h"

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/random.h"

namespace mindpipe::bench {

Many Footprint::empty(const Shape& shape, DType dtype) {
  Many all;
  for (int set = 0; set < sets; ++set) {
    Arena& block = blocks_.emplace_back(backend_.memory(), MemoryClass::workspace, bytes_for(shape, dtype));
    all.push_back(block.take(shape, dtype));
  }
  return all;
}

Many Footprint::normal(const Shape& shape, DType dtype, double deviation) {
  constexpr std::int64_t drawn = std::int64_t{1}
                                 << 20;  // again and again: no kernel is faster on numbers that come twice
  std::vector<float> numbers(static_cast<std::size_t>(std::min(drawn, shape.count())));
  RandomStream{.seed = 1, .purpose = purpose_of("operand")}.normals(
      0, numbers.size(), static_cast<float>(deviation), numbers.data());
  const auto count = static_cast<std::int64_t>(numbers.size());
  Arena block(backend_.memory(), MemoryClass::workspace, bytes_for({count}, DType::f32));
  const Tensor source = block.take({count}, DType::f32);
  backend_.upload(numbers.data(), source);
  const Many all = empty(shape, dtype);
  for (const Tensor& t : all)
    for (std::int64_t first = 0; first < t.count(); first += count) {
      const std::int64_t here = std::min(count, t.count() - first);
      backend_.convert({source.range(0, here), t.range(first, here)});
    }
  backend_.synchronize();
  return all;
}

Many Footprint::constant(const Shape& shape, DType dtype, double value) {
  const Many all = empty(shape, dtype);
  for (const Tensor& t : all) backend_.fill({t, value});
  return all;
}

Many Footprint::ids(std::int64_t count, std::int64_t below) {
  const RandomStream stream{.seed = 1, .purpose = purpose_of("ids")};
  std::vector<std::int32_t> drawn(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<std::int32_t>(stream.word(i) % static_cast<std::uint64_t>(below));
  const Many all = empty({count}, DType::i32);
  for (const Tensor& t : all) backend_.upload(drawn.data(), t);
  return all;
}

std::vector<Kernel> kernels_of_a_step(const Sizes& sizes) {
  std::vector<Kernel> all;
  for (const auto& part : {products_of(sizes), attention_of(sizes), rows_of(sizes), updates_of(sizes),
                           convolutions_of(sizes), integers_of(sizes)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Kernel> attention_of(const Sizes& s) {
  const std::int64_t n = s.rows(), w = s.width, head = w / s.heads;
  const std::string shape =
      fmt::format("{} x {} x {} heads of {}, causal", s.samples, s.sequence, s.heads, head);
  const double pairs = of(n) * of(s.sequence) / 2 * of(w), bytes = of(n) * of(w) * element(s.dtype),
               sums = of(n) * of(s.heads) * 4;
  const AttentionParameters parameters{.queries = s.sequence,
                                       .keys = s.sequence,
                                       .causal = true,
                                       .scale = static_cast<float>(1 / std::sqrt(of(head)))};
  const Shape packed{s.samples, s.sequence, 3 * s.heads, head}, plain{s.samples, s.sequence, s.heads, head},
      of_sums{s.samples, s.heads, s.sequence};
  const int heads = static_cast<int>(s.heads);
  const auto part = [heads](const Tensor& t, int which) { return Heads{t, which * heads, heads}; };
  const auto forward = [=](Footprint& memory) -> Call {
    const Many qkv = memory.normal(packed, s.dtype), out = memory.empty(plain, s.dtype),
               log_sum = memory.empty(of_sums, DType::f32);
    return [=, &memory](int i) {
      memory.backend().attention(
          {parameters, part(qkv[i], 0), part(qkv[i], 1), part(qkv[i], 2), log_sum[i], out[i]});
    };
  };
  const auto backward = [=](Footprint& memory) -> Call {
    const Many qkv = memory.normal(packed, s.dtype), out = memory.empty(plain, s.dtype),
               log_sum = memory.empty(of_sums, DType::f32), dout = memory.normal(plain, s.dtype),
               dqkv = memory.empty(packed, s.dtype);
    for (int i = 0; i < sets; ++i)
      memory.backend().attention(
          {parameters, part(qkv[i], 0), part(qkv[i], 1), part(qkv[i], 2), log_sum[i], out[i]});
    return [=, &memory](int i) {
      memory.backend().attention_backward({parameters, part(qkv[i], 0), part(qkv[i], 1), part(qkv[i], 2),
                                           log_sum[i], out[i], dout[i], part(dqkv[i], 0), part(dqkv[i], 1),
                                           part(dqkv[i], 2)});
    };
  };
  return {{"attention", shape, of(s.layers), 4 * pairs, 4 * bytes + sums, forward},
          {"attention backward", shape, of(s.layers), 10 * pairs, 8 * bytes + sums, backward}};
}

std::vector<Kernel> updates_of(const Sizes& s) {
  const std::int64_t count = s.parameters();
  const std::string shape = fmt::format("{} parameters", count);
  const auto adamw = [=](Footprint& memory) -> Call {
    const Many g = memory.normal({count}, DType::f32, 1e-3), master = memory.normal({count}, DType::f32),
               m = memory.normal({count}, DType::f32), v = memory.constant({count}, DType::f32, 1e-4),
               value = memory.empty({count}, s.dtype);
    const Many sums = memory.constant({2}, DType::f64, 1),
               decision = memory.constant({Decision::places}, DType::f64, 0);
    memory.backend().clip_and_scale({{.valid = 1, .beta1 = 0.9f, .beta2 = 0.999f}, sums[0], decision[0]});
    return [=, &memory](int i) {
      memory.backend().adamw({{.rate = 1e-4f, .decay = 0.1f},
                              decision[0],
                              g[i],
                              master[i],
                              m[i],
                              v[i],
                              s.dtype == DType::f32 ? Tensor{} : value[i]});
    };
  };
  const auto squares = [=](Footprint& memory) -> Call {
    const Many g = memory.normal({count}, DType::f32),
               sums = memory.empty({(count + statistics_chunk - 1) / statistics_chunk}, DType::f64);
    return [=, &memory](int i) { memory.backend().sum_squares({g[i], sums[i]}); };
  };
  const auto zero = [=](Footprint& memory) -> Call {
    const Many g = memory.empty({count}, DType::f32);
    return [=, &memory](int i) { memory.backend().fill({g[i], 0}); };
  };
  const auto hash = [=](Footprint& memory) -> Call {
    const Many x = memory.normal({count}, DType::f32);
    return [=, &memory](int i) { memory.backend().hash(x[i]); };
  };
  constexpr double of_copies = 3.0 / 100;  // values or masters, and both moments, every 100 steps
  const double rounded = s.dtype == DType::f32 ? 0 : element(s.dtype);
  return {{"adamw", shape, 1, 0, of(count) * (28 + rounded), adamw},
          {"sum of squares", shape, 1, 0, of(count) * 4, squares},
          {"zeros for gradients", shape, 1, 0, of(count) * 4, zero},
          {"hash of a copy", shape, of_copies, 0, of(count) * 4, hash}};
}

std::vector<Kernel> integers_of(const Sizes& s) {
  const std::int64_t count = s.vocabulary * s.width;
  const std::string shape = fmt::format("{} x {}", s.vocabulary, s.width);
  const auto into = [=](Footprint& memory) -> Call {
    const Many g = memory.normal({count}, DType::f32, 1e-3), totals = memory.constant({count}, DType::i64, 0),
               marks = memory.constant({1}, DType::i64, 0);
    return [=, &memory](int i) { memory.backend().add_as_integers({g[i], totals[i], marks[i]}); };
  };
  const auto from = [=](Footprint& memory) -> Call {
    const Many g = memory.empty({count}, DType::f32), totals = memory.constant({count}, DType::i64, 12345),
               marks = memory.constant({1}, DType::i64, 0);
    return [=, &memory](int i) { memory.backend().from_integers({totals[i], marks[i], g[i]}); };
  };
  const auto sum = [=](Footprint& memory) -> Call {
    const Many other = memory.constant({count}, DType::i64, 1),
               totals = memory.constant({count}, DType::i64, 0);
    return [=, &memory](int i) { memory.backend().add({totals[i], other[i], totals[i]}); };
  };
  return {{"gradients as integers", shape, 0, 0, of(count) * 24, into},
          {"gradients from integers", shape, 0, 0, of(count) * 20, from},
          {"sum of integers", shape, 0, 0, of(count) * 24, sum}};
}

Kernel large_product(std::int64_t extent, DType dtype) {
  const Shape square{extent, extent};
  return {"large product",
          fmt::format("{0} x {0} x {0}", extent),
          1,
          2 * std::pow(of(extent), 3),
          3 * of(extent * extent) * element(dtype),
          [=](Footprint& memory) -> Call {
            const Many x = memory.normal(square, dtype),
                       w = memory.normal(square, dtype, 1 / std::sqrt(of(extent))),
                       y = memory.empty(square, dtype);
            return [=, &memory](int i) { memory.backend().linear({.x = x[i], .w = w[i], .y = y[i]}); };
          }};
}

Kernel large_copy(std::int64_t bytes) {
  const Shape shape{bytes / 4};
  return {"copy", fmt::format("{} MiB", bytes >> 20), 1, 0, 2 * of(bytes), [=](Footprint& memory) -> Call {
            const Many from = memory.normal(shape, DType::f32), to = memory.empty(shape, DType::f32);
            return [=, &memory](int i) { memory.backend().copy(from[i], to[i]); };
          }};
}

double seconds_of(const Kernel& kernel, Backend& backend, double least_seconds) {
  constexpr int rounds = 5;
  Footprint memory(backend);
  const Call call = kernel.prepare(memory);
  const auto timed = [&](int count) {
    backend.synchronize();
    const std::int64_t start = now_ns();
    for (int i = 0; i < count; ++i) call(i % sets);
    backend.synchronize();
    return seconds_since(start);
  };
  timed(sets);  // code is loaded, plans are made
  int count = sets;
  for (double seconds = timed(count); seconds < least_seconds && count < 100'000; seconds = timed(count))
    count = std::max(
        2 * count, static_cast<int>(count * std::min(1.2 * least_seconds / std::max(seconds, 1e-9), 100.0)));
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) all.push_back(timed(count) / count);
  std::sort(all.begin(), all.end());
  return all[rounds / 2];
}

}  // namespace mindpipe::bench
