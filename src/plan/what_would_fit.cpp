#include "plan/what_would_fit.h"

#include <algorithm>

namespace mindpipe {
namespace {

bool fits(const Config& config, const LayoutChoice& layout) {
  LayoutCandidate one{.layout = layout};
  simulate_layout(config, one);
  return one.fate == LayoutCandidate::Fate::simulated;
}

bool fits(const Config& config, LayoutChoice layout, bool any_tapes) {
  if (fits(config, layout)) return true;
  const ChosenBlocks none = WhichBlocks::none, all = WhichBlocks::block;
  for (const auto& [again, away] : {std::pair(all, none), std::pair(none, all)}) {
    layout.recompute = again;
    layout.swap = away;
    if (any_tapes && fits(config, layout)) return true;
  }
  return false;
}

}  // namespace

std::string what_would_fit(const Config& config, const LayoutChoice& layout, bool any_tapes) {
  const int micro_batch = layout.micro_batch > 0 ? layout.micro_batch : config.train.micro_batch;
  std::string text;
  std::vector<int> smaller = micro_batches_of(config, {.micro_batch = true}, layout.grid.data);
  std::reverse(smaller.begin(), smaller.end());
  LayoutChoice other = layout;
  const auto fitting = std::find_if(smaller.begin(), smaller.end(), [&](int samples) {
    other.micro_batch = samples;
    return samples < micro_batch && fits(config, other, any_tapes);
  });
  if (fitting != smaller.end()) text += fmt::format("with train.micro_batch={} it would fit", *fitting);
  other = layout;
  other.cuts.clear();
  for (const int times : {2, 4, 8}) {
    other.grid.pipeline = times * layout.grid.pipeline;
    if (!with_layout_if_allowed(config, other) || !fits(config, other, any_tapes)) continue;
    text += fmt::format("{}on {} stages it would fit", text.empty() ? "" : "; ", other.grid.pipeline);
    break;
  }
  return text.empty() ? "no smaller train.micro_batch and no 2, 4 or 8 times as many stages would do" : text;
}

}  // namespace mindpipe
