#include "runtime/slowness.h"

#include <cmath>

#include "core/random.h"

namespace mindpipe {

std::int64_t Slowness::longer(std::int64_t step, const Action& action, int index,
                              std::int64_t computes_ns) const {
  double factor = 1;
  for (std::size_t number = 0; number < works_.size(); ++number) {
    const Work& work = works_[number];
    if (step < work.from || step > work.last || (step - work.from) % work.every != 0) continue;
    factor *= work.factor;
    if (work.scatter == 0) continue;
    const RandomStream random{seed_, purpose_of("slowness") + number, static_cast<std::uint32_t>(step)};
    factor *= std::exp(work.scatter * random.normal(static_cast<std::uint64_t>(index)));
  }
  for (const auto& [from, last, share, seed] : micro_batches_) {
    if (step < from || step > last || !is_pass(action)) continue;
    const RandomStream random{seed, purpose_of("uneven"), static_cast<std::uint32_t>(step)};
    const double x = share * (2 * random.uniform(static_cast<std::uint64_t>(action.micro_batch / 2)) - 1);
    factor *= action.micro_batch % 2 == 0 ? 1 + x : 1 - x;
  }
  return std::llround(static_cast<double>(computes_ns) * (factor - 1));
}

std::int64_t Slowness::later(std::int64_t step, const Action& receive) const {
  std::int64_t later = 0;
  if (receive.kind == ActionKind::receive)
    for (const Link& link : links_)
      if (step >= link.from && step <= link.last && receive.peer == link.peer) later += link.later_ns;
  return later;
}

}  // namespace mindpipe
