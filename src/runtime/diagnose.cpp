#include "runtime/diagnose.h"

namespace mindpipe {

std::string diagnose(Worker& worker) {
  Stage& stage = worker.stage();
  for (int u : stage.local_units()) {
    const Unit& unit = stage.unit(u);
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
      for (int s = 0; s < unit.local_shards(p); ++s)
        if (const auto bad = worker.backend().count_not_finite(unit.value(p, s)); bad > 0)
          return fmt::format(
              "the first that is not finite is the weight {}.{} ({} of its elements); the last update went wrong: lower "
              "optimizer.rate.peak or turn on train.clip",
              unit.name(), unit.params()[p].parts[0].name, bad);
  }
  std::string found;
  worker.inspect([&](int block, const Boundary& out) {
    if (!found.empty() || !out.activation) return;
    if (const auto bad = worker.backend().count_not_finite(out.activation); bad > 0)
      found = fmt::format("weights are finite; the first output that is not is the activation [{}] of block {} ({} of its elements)",
                          to_string(out.activation.shape), stage.model().blocks()[block].name, bad);
  });
  return found.empty() ? "weights and activations of this rank are finite; look at the other stages' and at the head's logits" : found;
}

}  // namespace mindpipe
