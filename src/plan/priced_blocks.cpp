#include "plan/priced_blocks.h"

#include <algorithm>

#include "core/check.h"
#include "optim/unit_optimizer.h"
#include "plan/choose_recomputed.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"
#include "plan/step_bound.h"
#include "program/make_program.h"

namespace mindpipe {

Outline& PricedBlocks::priced(const Config& config, WhichBlocks recompute) {
  const auto key = std::tuple(config.grid.tensor, config.train.sequence_parallel, recompute,
                              row_of(config.schedule.kind).splits_backward, config.train.micro_batch);
  auto found = known_.find(key);
  if (found == known_.end()) {
    Config alike = config;
    alike.train.recompute = recompute;
    auto costs = std::make_unique<CostModel>(alike, make_layout(alike, {}));
    Outline outline = costs->outline();
    found = known_.emplace(key, Priced{std::move(costs), std::move(outline), {}}).first;
  }
  Outline& outline = found->second.outline;
  const std::vector<std::int64_t>& shares = shares_of(found->second, config.grid.data);
  for (std::size_t unit = 0; unit < shares.size(); ++unit) outline.units[unit].share = shares[unit];
  return outline;
}

Outline& PricedBlocks::laid_out(const Config& config) {
  const ChosenBlocks& recomputed = config.train.recompute;
  if (!recomputed.are_some()) {
    Outline& outline = priced(config, recomputed.kind);
    lay_out(outline, config);
    return outline;
  }
  const Outline& again = priced(config, WhichBlocks::block);
  mixed_ = priced(config, WhichBlocks::none);
  for (const int block : recomputed.numbers) {
    MP_REQUIRE(block < mixed_.all_blocks(), Exit::bad_configuration,
               "train.recompute names block {}, and the model has {}", block, mixed_.all_blocks());
    mixed_.blocks[block] = again.blocks[block];
  }
  lay_out(mixed_, config);
  return mixed_;
}

std::optional<ChosenBlocks> PricedBlocks::fitting(const Config& config,
                                                  const std::vector<std::int64_t>& over) {
  Config cut = config;
  const Outline& now = laid_out(config);  // a choice moves the cuts, where these are balanced
  cut.schedule.cuts.assign(now.first_block.begin() + 1, now.first_block.end() - 1);
  cut.train.recompute = WhichBlocks::none;
  const Outline& kept = laid_out(cut);
  const std::vector<int> in_flight =
      most_in_flight(order_of_step(kept, cut.schedule.kind, network_on_paper(cut)), kept.all_chunks());
  std::vector<std::int64_t> room = bytes_of_tapes(kept, in_flight, config.train.recompute);
  const std::vector<std::int64_t> beside = least_beside_tapes(kept);
  for (std::size_t stage = 0; stage < room.size(); ++stage)
    room[stage] = over.empty() ? std::min(room[stage], config.memory.device_limit - beside[stage])
                               : room[stage] - over[stage];
  return choose_recomputed(kept, priced(config, WhichBlocks::block), in_flight, room);
}

const std::vector<std::int64_t>& PricedBlocks::shares_of(Priced& priced, int data) {
  const auto [found, is_new] = priced.shares.try_emplace(data);
  for (const auto& unit : priced.costs->model().units()) {
    if (!is_new) break;
    const auto edges = share_edges(*unit, data);
    std::int64_t most = 0;
    for (int share = 0; share < data; ++share) most = std::max(most, 4 * (edges[share + 1] - edges[share]));
    found->second.push_back(most);
  }
  return found->second;
}

}  // namespace mindpipe
