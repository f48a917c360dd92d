#include "state/initial_values.h"

#include <algorithm>

#include "core/random.h"
#include "normals.h"

namespace mindpipe {

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
      }
    }
  }
}

}  // namespace mindpipe
