// The products of GPT-2 124M and a Llama layer on one thread: ours beside OpenBLAS (f32) and oneDNN (f32,
// bf16), interleaved, medians of CPU time. In the same rounds the peaks of the instructions that they are
// made of: raw, over operands in registers, and real, over random ones loaded from the first cache in each
// step; shares are of the real one. The last shape is one row by weights that come from memory
// ("cold"), as in generation: how fast they are read stands beside the rates of a copy and of a read.
//   products_bench [--rounds 5] [--only TEXT] [--instructions auto] [--json FILE]
#include <omp.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "instruction_peaks.h"
#include "memory_rates.h"
#include "product_contenders.h"

extern "C" void openblas_set_num_threads(int);

namespace {

using namespace mindpipe;
using namespace mindpipe::bench;

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
  shapes.push_back({"forward", 1, 768, 3072, weights_beyond_caches(768, 3072)});
  return shapes;
}

/// The peaks of one unit, round by round.
struct Peaks {
  std::vector<double> raw, real;
  void measure(Unit unit, Isa isa) {
    const Peak peak = measure_peak(unit, isa);
    raw.push_back(peak.raw);
    real.push_back(peak.real);
  }
  Peak medians() const { return {median(raw), median(real)}; }
};

/// Medians of one shape: GFLOP/s, and where weights are cold GB/s of memory.
struct Row {
  Shape3 shape;
  Peak full, half;
  std::vector<std::string> names;
  std::vector<double> rates;  ///< rates of ours, OpenBLAS, oneDNN; in bf16 of ours, oneDNN
  double copy = 0, read = 0;
};

/// Times one round of a contender; returns GFLOP/s.
double rate_of(const Contender& contender, const Shape3& s) {
  const std::int64_t repeats = std::max(s.weights, static_cast<std::int64_t>(1e9 / s.operations()));
  const double start = cpu_seconds();
  for (std::int64_t i = 0; i < repeats; ++i) contender.run(i % s.weights);
  return s.operations() * static_cast<double>(repeats) / (cpu_seconds() - start) * 1e-9;
}

Row time_shape(const Shape3& s, const Ours& ours, int rounds) {
  const Operands operands(s);
  std::vector<Contender> all = contenders_for(s, operands, ours);
  const Unit unit = unit_for_bf16(ours.isa);
  Peaks full, half;
  std::optional<MemoryRates> memory;
  if (s.weights > 1) memory.emplace();
  for (int round = 0; round <= rounds; ++round) {
    full.measure(Unit::multiply_add, ours.isa);
    if (unit != Unit::multiply_add) half.measure(unit, ours.isa);
    if (memory) memory->measure();
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      // Who finds the operands in the cache differs.
      Contender& contender = all[(turn + static_cast<std::size_t>(round)) % all.size()];
      if (unit == Unit::multiply_add && s.operations() > 2e10 && contender.name == "onednn_bf16" && round > 1)
        continue;  // slow where it is emulated
      const double rate = rate_of(contender, s);
      if (round > 0) contender.rates.push_back(rate);
    }
  }
  Row row{s, full.medians(), unit == Unit::multiply_add ? full.medians() : half.medians(), {}, {}};
  for (const Contender& contender : all) {
    row.names.push_back(contender.name);
    row.rates.push_back(median(contender.rates));
  }
  if (memory) {
    row.copy = memory->copy();
    row.read = memory->read();
  }
  return row;
}

void print_head(int rounds, Isa isa) {
  std::printf("GFLOP/s a core, medians of %d interleaved rounds, one thread, %s; bf16 by %s\n", rounds,
              name_of(isa), name_of(unit_for_bf16(isa)));
  std::printf("peaks: raw over operands in registers, real over random ones from the first cache\n");
  std::printf("%-40s %7s %7s %7s %7s %7s | %7s %7s %7s %7s | %s\n", "shape", "raw", "real", "ours", "blas",
              "dnnl", "raw bf", "real bf", "ours bf", "dnnl bf",
              "ours: of real, / blas, / dnnl; bf16: of real, / dnnl");
}

/// Bytes of the weight, in 1e9, that a product of one row reads a second.
double weight_rate(double gflops, int bytes_of_value) { return gflops / 2 * bytes_of_value; }

void print(const Row& row) {
  const std::vector<double>& r = row.rates;
  std::printf(
      "%-40s %7.1f %7.1f %7.1f %7.1f %7.1f | %7.1f %7.1f %7.1f %7.1f | %5.2f %5.2f %5.2f  %5.2f %5.2f\n",
      name_of(row.shape).c_str(), row.full.raw, row.full.real, r[0], r[1], r[2], row.half.raw, row.half.real,
      r[3], r[4], r[0] / row.full.real, r[0] / r[1], r[0] / r[2], r[3] / row.half.real, r[3] / r[4]);
  if (row.copy > 0) {
    const double full = weight_rate(r[0], 4), half = weight_rate(r[3], 2);
    std::printf(
        "  weights read from memory: f32 %.1f GB/s (oneDNN %.1f), bf16 %.1f GB/s (oneDNN %.1f); beside it "
        "a "
        "copy %.1f GB/s (read and written bytes), a read %.1f GB/s: %.2f and %.2f of the copy\n",
        full, weight_rate(r[2], 4), half, weight_rate(r[4], 2), row.copy, row.read, full / row.copy,
        half / row.copy);
  }
  std::fflush(stdout);
}

/// The row as a line of JSON.
std::string json_of(const Row& row, Isa isa) {
  std::string line = fmt::format(
      R"({{"form": "{}", "n": {}, "k": {}, "m": {}, "cold": {}, "instructions": "{}", "unit_bf16": "{}", )"
      R"("raw_peak": {:.1f}, "real_peak": {:.1f}, "raw_peak_bf16": {:.1f}, "real_peak_bf16": {:.1f})",
      row.shape.form, row.shape.n, row.shape.k, row.shape.m, row.shape.weights > 1, name_of(isa),
      name_of(unit_for_bf16(isa)), row.full.raw, row.full.real, row.half.raw, row.half.real);
  for (std::size_t i = 0; i < row.rates.size(); ++i)
    line += fmt::format(R"(, "{}": {:.1f})", row.names[i], row.rates[i]);
  if (row.copy > 0)
    line += fmt::format(
        R"(, "weight_gbs": {:.2f}, "weight_gbs_bf16": {:.2f}, "copy_gbs": {:.2f}, "read_gbs": {:.2f})",
        weight_rate(row.rates[0], 4), weight_rate(row.rates[3], 2), row.copy, row.read);
  return line + "}\n";
}

int run(const Options& options) {
  omp_set_num_threads(1);
  openblas_set_num_threads(1);
  const Ours ours(options.instructions);
  MP_REQUIRE(processor_has(Isa::avx2), Exit::bad_configuration,
             "products_bench measures multiply-adds, which this processor lacks (AVX2 and FMA)");
  std::ofstream file;
  if (!options.json.empty()) file.open(options.json);
  print_head(options.rounds, ours.isa);
  for (const Shape3& shape : all_shapes()) {
    if (name_of(shape).find(options.only) == std::string::npos) continue;
    const Row row = time_shape(shape, ours, options.rounds);
    print(row);
    if (file) file << json_of(row, ours.isa);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(options_of(count, words));
  } catch (const Error& error) {
    std::fprintf(stderr, "products_bench: %s\n", error.what());
    return static_cast<int>(error.code);
  }
}
