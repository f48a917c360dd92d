#include "plan/lay_out.h"

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "plan/network_on_paper.h"
#include "program/choice_parts.h"
#include "program/clock/transfer.h"
#include "program/partition.h"
#include "program/schedules/cuts_of_v.h"
#include "state/layout.h"

namespace mindpipe {

std::vector<int> cuts_of(const Config& config, const std::vector<std::int64_t>& costs,
                         const std::vector<double>& slower) {
  const int chunks = config.grid.pipeline * config.schedule.chunks;
  if (!config.schedule.cuts.empty())
    return manual_cuts(config.schedule.cuts, static_cast<int>(costs.size()), chunks);
  if (row_of(config.schedule.kind).in_v) return cuts_in_v(costs, config.grid.pipeline);
  return row_of(config.schedule.kind).of_subnets ? even_cuts(costs, chunks, slower)
                                                 : balanced_cuts(costs, chunks);
}

bool cuts_know_tapes(const Config& config) {
  return row_of(config.schedule.kind).in_v && config.schedule.cuts.empty() &&
         config.train.recompute != ChosenBlocks(WhichBlocks::block);
}

void lay_out(Outline& outline, const Config& config) {
  lay_out_roughly(outline, config);
  if (cuts_know_tapes(config))
    outline.first_block = cuts_of_v(outline, config.schedule.kind, network_on_paper(config));
}

void lay_out_roughly(Outline& outline, const Config& config) {
  const Layout layout = make_layout(config, {});
  outline.stages = config.grid.pipeline;
  outline.lanes = config.grid.supernet;
  outline.own_cuts = config.supernet.cuts == SubnetCuts::own;
  outline.chunks = config.schedule.chunks;
  outline.micro_batches = layout.micro_batches();
  outline.shards = layout.local_data_shards();
  outline.data = layout.grid.data;
  outline.tensor = layout.grid.tensor;
  outline.sharded_optimizer = config.train.zero > 0 && layout.grid.data > 1;
  outline.sharded_gradients = config.train.zero > 1 && layout.grid.data > 1;
  outline.state_on_host = config.memory.optimizer == StatePlace::host;
  const double tapes = config.schedule.memory;
  outline.tapes_percent = tapes > 0 ? std::max(1, static_cast<int>(std::lround(100 * tapes))) : 0;
  outline.rank_of_chunk = row_of(config.schedule.kind).in_v ? v_shaped_chunks(outline.stages, outline.chunks)
                                                            : looped_chunks(outline.stages, outline.chunks);
  std::vector<std::int64_t> passes;
  for (int block = 0; block < outline.all_blocks(); ++block) {
    passes.push_back(0);
    for (const BlockPart& part : choice_parts(outline, block)) {  // a supernet's by their mean
      std::int64_t sum = 0;
      for (int i = 0; i < part.count; ++i) {
        sum += outline.cost(block, part.first + i).passes();
      }
      passes.back() += sum / part.count;
    }
  }
  outline.first_block = cuts_of(config, passes, outline.slower);
  outline.part_bytes = part_bytes_on(network_on_paper(config), outline, config.repartition.moves());
}

}  // namespace mindpipe
