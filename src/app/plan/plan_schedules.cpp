#include "app/plan/plan_schedules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/text.h"
#include "plan/layout_search.h"
#include "plan/layout_space.h"
#include "plan/priced_blocks.h"

namespace mindpipe {
namespace {

/// Steps of up to so many forwards are planned by all schedules in about two seconds.
constexpr int most_forwards = 1024;

std::string row_of_table(const Config& config, const LayoutCandidate& candidate) {
  const LayoutChoice& layout = candidate.layout;
  const std::string name = fmt::format("{:<14} {:>6}", name_of(layout.schedule), layout.chunks);
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  return fmt::format("{} {:>10} {:>10.1f} {:>10.1f}{}{}\n", name,
                     human_seconds(1e-9 * static_cast<double>(candidate.step)), mebibytes(candidate.tapes),
                     mebibytes(candidate.memory),
                     candidate.is_beyond_host                             ? "  more than memory.host_limit"
                     : candidate.fate == LayoutCandidate::Fate::too_large ? "  more than memory.device_limit"
                                                                          : "",
                     layout == layout_of(config) ? "  this one" : "");
}

}  // namespace

std::string schedules_text(const Config& config, const Outline& outline, PricedBlocks& blocks) {
  if (outline.stages == 1) return "";
  if (outline.micro_batches > most_forwards / outline.stages)
    return fmt::format(
        "\nschedules are not compared beyond {} forwards ({} stages x {} micro-batches); "
        "plan --search does\n",
        most_forwards, outline.stages, outline.micro_batches);
  std::string text = fmt::format("\n{:<14} {:>6} {:>10} {:>10} {:>10}\n", "schedule", "chunks", "step",
                                 "tapes MiB", "all MiB");
  std::vector<std::pair<std::string, std::string>> refused;  // each reason, and whose it is
  for (const LayoutChoice& layout : with_other_schedules(layout_of(config))) {
    LayoutCandidate candidate{.layout = layout};
    blocks.plan_whole(config, candidate);
    if (candidate.fate != LayoutCandidate::Fate::refused) {
      text += row_of_table(config, candidate);
      continue;
    }
    const std::string name = fmt::format("{} ({} chunks)", name_of(layout.schedule), layout.chunks);
    const auto same = std::find_if(refused.begin(), refused.end(),
                                   [&](const auto& one) { return one.first == candidate.refusal; });
    if (same == refused.end()) refused.emplace_back(candidate.refusal, name);
    else same->second += ", " + name;
  }
  for (const auto& [reason, names] : refused) text += fmt::format("refused: {}: {}\n", names, reason);
  return text;
}

}  // namespace mindpipe
