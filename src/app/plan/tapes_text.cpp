#include "app/plan/tapes_text.h"

#include <algorithm>

#include "config/config.h"
#include "core/text.h"
#include "program/swapped_blocks.h"

namespace mindpipe {
namespace {

/// "stage 0 keeps 3, computes 2 again, swaps 5"
std::string fates_on(const RunPlan& plan, const ChosenBlocks& again, int stage) {
  int kept = 0, recomputed = 0, swapped = 0;
  for (const auto& [first, last] : plan.ranges_of(stage))
    for (int block = first; block < last; ++block)
      ++(is_swapped(plan.outline, block) ? swapped : again.has(block) ? recomputed : kept);
  return fmt::format("stage {} keeps {}, computes {} again, swaps {}", stage, kept, recomputed, swapped);
}

/// "1.61 s and 134 MiB", or that it does not go. Other fates have cuts of their own.
std::string cost_of_all(const Config& config, LayoutChoice layout, const ChosenBlocks& again,
                        const ChosenBlocks& swapped) {
  if (layout.recompute != again || layout.swap != swapped) layout.cuts = config.schedule.cuts;
  layout.recompute = again;
  layout.swap = swapped;
  LayoutCandidate all{.layout = layout};
  simulate_layout(config, all);
  if (all.fate == LayoutCandidate::Fate::refused) return "is refused";
  const std::string much = all.is_beyond_host
                               ? fmt::format(" ({} on the host, where memory.host_limit is less)",
                                             human_bytes(static_cast<double>(all.host)))
                           : all.fate == LayoutCandidate::Fate::too_large ? ", which is too much"
                                                                          : "";
  return fmt::format("{} and {}{}", human_seconds(static_cast<double>(all.step) * 1e-9),
                     human_bytes(static_cast<double>(all.memory)), much);
}

}  // namespace

std::string tapes_text(const Config& config, const RunPlan& plan, const LayoutChoice& layout,
                       const SearchFreedom& free) {
  if (!free.swap && !free.recompute) return "";
  std::string text = "tapes of blocks: ";
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    text += (stage > 0 ? "; " : "") + fates_on(plan, layout.recompute, stage);
  const auto cost = [&](const ChosenBlocks& again, const ChosenBlocks& swapped) {
    return cost_of_all(config, layout, again, swapped);
  };
  text +=
      fmt::format("\nkeeping all: {}; computing all again: {}", cost(WhichBlocks::none, WhichBlocks::none),
                  cost(WhichBlocks::block, WhichBlocks::none));
  return text + (free.swap ? "; swapping all: " + cost(WhichBlocks::none, WhichBlocks::block) : "") + "\n";
}

std::string binding_text(const Config& config, const RunPlan& plan) {
  const Timeline& expected = plan.training.expected;
  const auto busiest = std::max_element(expected.busy.begin(), expected.busy.end()) - expected.busy.begin();
  int fullest = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    if (total_of(plan.most_memory(stage)) > total_of(plan.most_memory(fullest))) fullest = stage;
  const std::int64_t limit = config.memory.device_limit, bytes = total_of(plan.most_memory(fullest));
  return fmt::format(
      "what binds: stage {}, idle {:.1f} % of the time; a rank of stage {} needs {}{}\n", busiest,
      100 * expected.bubble(static_cast<int>(busiest)), fullest, human_bytes(static_cast<double>(bytes)),
      limit > 0
          ? fmt::format(" of memory.device_limit={}, {} stay free", human_bytes(static_cast<double>(limit)),
                        human_bytes(static_cast<double>(limit - bytes)))
          : " (memory.device_limit is 0, so any layout fits)");
}

}  // namespace mindpipe
