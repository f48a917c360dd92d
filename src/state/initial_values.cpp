#include "state/initial_values.h"

#include <algorithm>

#include "core/random.h"
#include "normals.h"

namespace mindpipe {
namespace {

/// Zeros what a run holds of the row that begins as zeros; `values` are those of the run.
void clear_row(const ParamSpec& spec, const ElementRun& run, float* values) {
  if (spec.initial.zero_row < 0) return;
  const std::int64_t begin = run.row * spec.width() + run.column, row = spec.initial.zero_row * spec.width(),
                     first = std::max(row - begin, std::int64_t{0}),
                     last = std::min(row + spec.width() - begin, run.count);
  if (first < last) std::fill(values + first, values + last, 0.0f);
}

}  // namespace

void initial_values(const Unit& unit, std::uint64_t seed, int threads, Elements within, float* flat) {
  std::fill_n(flat, within.count(), 0.0f);
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    const ParamSpec& spec = unit.params()[p];
    if (spec.initial.kind == Initial::Kind::zero) continue;
    for (int i = 0; i < static_cast<int>(spec.pieces.size()); ++i) {
      const RandomStream stream{seed, purpose_of(unit.name() + "." + spec.pieces[i].name)};
      const std::vector<ElementRun> runs = runs_of(unit, {.param = p, .piece = i}, within);
#pragma omp parallel for num_threads(threads) schedule(static) if (runs.size() > 1)
      for (const ElementRun& run : runs) {
        float* to = flat + run.flat - within.first;
        if (spec.initial.kind == Initial::Kind::one) std::fill_n(to, run.count, 1.0f);
        else
          draw_normals(stream, run.row * spec.width() + run.column, run.count,
                       static_cast<float>(spec.initial.deviation), to);
        clear_row(spec, run, to);
      }
    }
  }
}

}  // namespace mindpipe
