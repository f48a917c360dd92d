#include "plan/what_would_fit.h"

#include <algorithm>

#include "config/config.h"

namespace mindpipe {
namespace {

bool fits(const Config& config, const LayoutChoice& layout) {
  LayoutCandidate one{.layout = layout};
  simulate_layout(config, one);
  return one.fate == LayoutCandidate::Fate::simulated;
}

bool fits(const Config& config, const LayoutChoice& layout, bool any_tapes) {
  return fits(config, layout) || (any_tapes && fits_with_other_tapes(config, layout));
}

}  // namespace

bool fits_with_other_tapes(const Config& config, LayoutChoice layout) {
  const ChosenBlocks none = WhichBlocks::none, all = WhichBlocks::block;
  for (const auto& [again, away] : {std::pair(all, none), std::pair(none, all)}) {
    layout.recompute = again;
    layout.swap = away;
    if (fits(config, layout)) return true;
  }
  return false;
}

std::string what_would_fit(const Config& config, const LayoutChoice& layout, bool any_tapes) {
  const int micro_batch = layout.micro_batch > 0 ? layout.micro_batch : config.train.micro_batch;
  std::string text;
  std::vector<int> smaller = micro_batches_of(config, {.micro_batch = true}, layout.grid.data);
  std::erase_if(smaller, [&](int samples) { return samples >= micro_batch; });
  LayoutChoice other = layout;
  const auto too_large = std::partition_point(smaller.begin(), smaller.end(), [&](int samples) {
    other.micro_batch = samples;
    return fits(config, other, any_tapes);
  });
  if (too_large != smaller.begin())
    text += fmt::format("with train.micro_batch={} it would fit", *std::prev(too_large));
  other = layout;
  other.cuts.clear();
  for (const int times : {2, 4, 8}) {
    other.grid.pipeline = times * layout.grid.pipeline;
    if (!with_layout_if_allowed(config, other) || !fits(config, other, any_tapes)) continue;
    text += fmt::format("{}on {} stages it would fit", text.empty() ? "" : "; ", other.grid.pipeline);
    break;
  }
  return text.empty()
             ? "for this layout no smaller train.micro_batch and no 2, 4 or 8 times as many stages would do"
             : text;
}

}  // namespace mindpipe
