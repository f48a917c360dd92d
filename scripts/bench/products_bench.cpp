// The products of GPT-2 124M and a Llama layer on one thread: ours beside OpenBLAS (f32) and oneDNN (f32,
// bf16), interleaved, medians of CPU time, with the peaks of the multiply-add and (where there is one) of the
// bf16 instruction measured in the same rounds.
//   products_bench [--rounds 5] [--only TEXT] [--instructions auto] [--json FILE]
#include <cblas.h>
#include <immintrin.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check.h"
#include "cpu/products.h"
#define MINDPIPE_ISA bench
#include "cpu/simd/products_amx_tiles.h"

extern "C" void openblas_set_num_threads(int);

namespace {

using namespace mindpipe;

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class T>
struct Block {
  std::unique_ptr<T[], void (*)(void*)> memory;
  explicit Block(std::int64_t count)
      : memory(static_cast<T*>(std::aligned_alloc(4096, (count * sizeof(T) / 4096 + 1) * 4096)), std::free) {}
  T* data() const { return memory.get(); }
};

struct Shape3 {
  const char* form;
  std::int64_t n, k, m;
};
std::string name_of(const Shape3& s) {
  return fmt::format("{:8} n={:<5} k={:<5} m={}", s.form, s.n, s.k, s.m);
}

/// Operands of one shape in f32 and bf16: x [n,k], w [m,k], y [n,m], random enough that no value is special.
struct Operands {
  Block<float> x, w, y;
  Block<std::uint16_t> x_half, w_half, y_half;
  explicit Operands(const Shape3& s)
      : x(s.n * s.k), w(s.m * s.k), y(s.n * s.m), x_half(s.n * s.k), w_half(s.m * s.k), y_half(s.n * s.m) {
    const auto fill = [](Block<float>& full, Block<std::uint16_t>& half, std::int64_t count) {
      std::uint32_t state = 1;
      for (std::int64_t i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        full.data()[i] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
        std::uint32_t bits;
        std::memcpy(&bits, full.data() + i, 4);
        half.data()[i] = static_cast<std::uint16_t>(bits >> 16);
      }
    };
    fill(x, x_half, s.n * s.k);
    fill(w, w_half, s.m * s.k);
    fill(y, y_half, s.n * s.m);
  }
};

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> rates;
};

Product product_of(const Shape3& s, const Operands& o, bool bf16) {
  const void* x = bf16 ? static_cast<const void*>(o.x_half.data()) : o.x.data();
  const void* w = bf16 ? static_cast<const void*>(o.w_half.data()) : o.w.data();
  void* y = bf16 ? static_cast<void*>(o.y_half.data()) : o.y.data();
  if (!std::strcmp(s.form, "forward"))
    return {{x, s.k, false, bf16},
            {w, s.k, false, bf16},
            s.n,
            s.m,
            s.k,
            {y, bf16},
            {},
            {},
            Activation::none,
            false,
            false};
  if (!std::strcmp(s.form, "input"))
    return {{y, s.m, false, bf16},
            {w, s.k, true, bf16},
            s.n,
            s.k,
            s.m,
            {const_cast<void*>(x), bf16},
            {},
            {},
            Activation::none,
            true,
            false};
  return {{y, s.m, true, bf16},
          {x, s.k, true, bf16},
          s.m,
          s.k,
          s.n,
          {o.w.data(), false},
          {},
          {},
          Activation::none,
          true,
          true};
}

void openblas(const Shape3& s, const Operands& o) {
  const int n = static_cast<int>(s.n), k = static_cast<int>(s.k), m = static_cast<int>(s.m);
  if (!std::strcmp(s.form, "forward"))
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, m, k, 1, o.x.data(), k, o.w.data(), k, 0,
                o.y.data(), m);
  else if (!std::strcmp(s.form, "input"))
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, k, m, 1, o.y.data(), m, o.w.data(), k, 0,
                o.x.data(), k);
  else
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, k, n, 1, o.y.data(), m, o.x.data(), k, 1,
                o.w.data(), k);
}

/// A oneDNN product of the same operands, created once.
std::function<void()> onednn(const Shape3& s, const Operands& o, bool bf16) {
  using namespace dnnl;
  const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const bool weight = !std::strcmp(s.form, "weight");
  const auto plain = [&](std::int64_t r, std::int64_t c, memory::data_type t) {
    return memory::desc({r, c}, t, memory::dims{c, 1});
  };
  const auto turned = [&](std::int64_t r, std::int64_t c, memory::data_type t) {
    return memory::desc({r, c}, t, memory::dims{1, r});
  };
  const Product p = product_of(s, o, bf16);
  const auto a = weight ? turned(s.m, s.n, type) : plain(p.rows, p.depth, type);
  const auto b =
      !std::strcmp(s.form, "forward") ? turned(p.depth, p.cols, type) : plain(p.depth, p.cols, type);
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
  const std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(a, cpu, const_cast<void*>(p.a.data))},
      {DNNL_ARG_WEIGHTS, memory(b, cpu, const_cast<void*>(p.b.data))},
      {DNNL_ARG_DST, memory(c, cpu, p.c.data)}};
  return [=] {
    matmul_of->execute(*queue, arguments);
    queue->wait();
  };
}

/// 24 independent chains of multiply-adds: what no product can exceed. Returns their count of operations.
__attribute__((target("avx512f"))) double peak_avx512(int turns) {
  __m512 sum[24], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" : "=v"(s) : "0"(y));  // opaque, or equal chains become one
  for (int i = 0; i < turns; ++i) {
#pragma GCC unroll 24
    for (auto& s : sum) s = _mm512_fmadd_ps(s, x, y);
  }
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" ::"v"(s));
  return 24.0 * 16 * 2 * turns;
}
__attribute__((target("avx2,fma"))) double peak_avx2(int turns) {
  __m256 sum[12], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
#pragma GCC unroll 12
  for (auto& s : sum) __asm__ volatile("" : "=x"(s) : "0"(y));  // opaque, or equal chains become one
  for (int i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (auto& s : sum) s = _mm256_fmadd_ps(s, x, y);
  }
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" ::"x"(s));
  return 12.0 * 8 * 2 * turns;
}

/// Four tiles of sums that take products of two and two in turn: the raw rate of the tile instruction.
double peak_tiles(int turns) {
  bench::products::ProcessorTiles tiles;
  tiles.clear<0>();
  tiles.clear<1>();
  tiles.clear<2>();
  tiles.clear<3>();
  tiles.clear<4>();
  tiles.clear<5>();
  tiles.clear<6>();
  tiles.clear<7>();
  for (int i = 0; i < turns; ++i) {
    tiles.multiply<0, 4, 6>();
    tiles.multiply<1, 4, 7>();
    tiles.multiply<2, 5, 6>();
    tiles.multiply<3, 5, 7>();
  }
  return 4.0 * 2 * 16 * 16 * 32 * turns;
}

/// 24 independent chains of products of pairs.
__attribute__((target("avx512f"))) double peak_pairs(int turns) {
  __m512 sum[24], x = _mm512_castsi512_ps(_mm512_set1_epi16(0x3f7f)),
                  y = _mm512_castsi512_ps(_mm512_set1_epi16(0x3a83));
#pragma GCC unroll 24
  for (auto& s : sum) __asm__ volatile("" : "=v"(s) : "0"(y));  // opaque, or equal chains become one
  for (int i = 0; i < turns; ++i) {
#pragma GCC unroll 24
    for (auto& s : sum) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(s) : "v"(x), "v"(y));
  }
  return 24.0 * 16 * 4 * turns;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

struct Options {
  int rounds = 5;
  std::string only, instructions = "auto", json;
};
Options options_of(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string key = words[i], value = words[i + 1];
    if (key == "--rounds") options.rounds = std::stoi(value);
    else if (key == "--only") options.only = value;
    else if (key == "--instructions") options.instructions = value;
    else if (key == "--json") options.json = value;
  }
  return options;
}

std::vector<Shape3> all_shapes() {
  std::vector<Shape3> shapes;
  for (const char* form : {"forward", "input", "weight"}) {
    for (const auto& [k, m] : {std::pair<int, int>{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}})
      shapes.push_back({form, 1024, k, m});
    shapes.push_back({form, 4096, 768, 3072});
    shapes.push_back({form, 256, 768, 50304});
    shapes.push_back({form, 1024, 768, 50304});
    shapes.push_back({form, 512, 4096, 11008});
  }
  for (int n : {1, 8}) shapes.push_back({"forward", n, 768, 3072});
  return shapes;
}

/// Our kernels for one set of instructions, with a workspace for products of any size.
struct Ours {
  Isa isa;
  const ProductKernels &kernels = choose_product_kernels(isa, false),
                       &half_kernels = choose_product_kernels(isa, true);
  Block<char> workspace{static_cast<std::int64_t>(
      std::max(kernels.workspace_bytes(1 << 20, 1 << 20), half_kernels.workspace_bytes(1 << 20, 1 << 20)))};
  explicit Ours(const std::string& instructions) : isa(choose_isa(instructions)) {}
  bool tiles() const { return &half_kernels == &avx512::amx_kernels; }
  bool pairs() const { return &half_kernels == &avx512::pair_kernels; }
  void run(const Product& product, bool bf16) const {
    run_product(bf16 ? half_kernels : kernels, product, 1, workspace.data());
  }
};

/// The rates of the processor's instructions, round by round.
struct Peaks {
  std::vector<double> full, half;
  void measure(const Ours& ours) {
    double start = cpu_seconds();
    const double done = ours.isa >= Isa::avx512 ? peak_avx512(200000) : peak_avx2(400000);
    full.push_back(done / (cpu_seconds() - start) * 1e-9);
    start = cpu_seconds();
    if (ours.tiles()) half.push_back(peak_tiles(100000) / (cpu_seconds() - start) * 1e-9);
    if (ours.pairs()) half.push_back(peak_pairs(200000) / (cpu_seconds() - start) * 1e-9);
  }
};

/// Medians of one shape in GFLOP/s.
struct Row {
  Shape3 shape;
  double peak, half_peak;
  std::vector<std::string> names;
  std::vector<double> rates;  ///< of ours, OpenBLAS, oneDNN; in bf16 of ours, oneDNN
};

std::vector<Contender> contenders_for(const Shape3& s, const Operands& o, const Ours& ours) {
  return {{"ours", [&s, &o, &ours] { ours.run(product_of(s, o, false), false); }, {}},
          {"openblas", [&s, &o] { openblas(s, o); }, {}},
          {"onednn", onednn(s, o, false), {}},
          {"ours_bf16", [&s, &o, &ours] { ours.run(product_of(s, o, true), true); }, {}},
          {"onednn_bf16", onednn(s, o, true), {}}};
}

Row time_shape(const Shape3& s, const Ours& ours, int rounds) {
  const Operands o(s);
  const double flops = 2.0 * static_cast<double>(s.n) * static_cast<double>(s.k) * static_cast<double>(s.m);
  std::vector<Contender> all = contenders_for(s, o, ours);
  Peaks peaks;
  const int repeats = std::max(1, static_cast<int>(1e9 / flops));
  for (int round = 0; round <= rounds; ++round) {
    peaks.measure(ours);
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      // Who finds the operands in the cache differs.
      Contender& contender = all[(turn + static_cast<std::size_t>(round)) % all.size()];
      if (flops > 2e10 && contender.name == "onednn_bf16" && round > 1)
        continue;  // slow where it is emulated
      const double start = cpu_seconds();
      for (int i = 0; i < repeats; ++i) contender.run();
      if (round > 0) contender.rates.push_back(flops * repeats / (cpu_seconds() - start) * 1e-9);
    }
  }
  const double peak = median(peaks.full);
  // Without an instruction of its own bf16 is widened and multiplied as f32.
  Row row{s, peak, peaks.half.empty() ? peak : median(peaks.half), {}, {}};
  for (const Contender& contender : all) {
    row.names.push_back(contender.name);
    row.rates.push_back(median(contender.rates));
  }
  return row;
}

void print_head(int rounds, Isa isa) {
  std::printf("GFLOP/s a core, medians of %d interleaved rounds, one thread, %s\n", rounds, name_of(isa));
  std::printf("%-34s %7s %7s %7s %7s | %7s %7s %7s | %s\n", "shape", "peak", "ours", "blas", "dnnl",
              "peak bf", "ours bf", "dnnl bf", "ours: of peak, / blas, / dnnl; bf16: of peak, / dnnl");
}

void print(const Row& row) {
  const std::vector<double>& r = row.rates;
  std::printf("%-34s %7.1f %7.1f %7.1f %7.1f | %7.1f %7.1f %7.1f | %5.2f %5.2f %5.2f  %5.2f %5.2f\n",
              name_of(row.shape).c_str(), row.peak, r[0], r[1], r[2], row.half_peak, r[3], r[4],
              r[0] / row.peak, r[0] / r[1], r[0] / r[2], r[3] / row.half_peak, r[3] / r[4]);
  std::fflush(stdout);
}

/// The row as a line of JSON.
std::string json_of(const Row& row) {
  std::string line =
      fmt::format(R"({{"form": "{}", "n": {}, "k": {}, "m": {}, "peak": {:.1f}, "peak_bf16": {:.1f})",
                  row.shape.form, row.shape.n, row.shape.k, row.shape.m, row.peak, row.half_peak);
  for (std::size_t i = 0; i < row.rates.size(); ++i)
    line += fmt::format(R"(, "{}": {:.1f})", row.names[i], row.rates[i]);
  return line + "}\n";
}

}  // namespace

int main(int count, char** words) {
  const Options options = options_of(count, words);
  omp_set_num_threads(1);
  openblas_set_num_threads(1);
  const Ours ours(options.instructions);
  std::ofstream file;
  if (!options.json.empty()) file.open(options.json);
  print_head(options.rounds, ours.isa);
  for (const Shape3& shape : all_shapes()) {
    if (name_of(shape).find(options.only) == std::string::npos) continue;
    const Row row = time_shape(shape, ours, options.rounds);
    print(row);
    if (file) file << json_of(row);
  }
}
