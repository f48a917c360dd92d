#include "plan/layout_trial.h"

#include <algorithm>
#include <numeric>

#include "plan/network_on_paper.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "plan/subnet_search.h"
#include "program/partition.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

/// How often more blocks of a layout are computed again, until it fits to the byte.
constexpr int most_choices = 6;

void take_times(LayoutCandidate& candidate, const Timeline& expected, int stages) {
  candidate.step = expected.step;
  candidate.work = std::accumulate(expected.busy.begin(), expected.busy.end(), std::int64_t{0}) *
                   (num_ranks(candidate.layout.grid) / stages);
}

/// Looks at a layout, which a rule may refuse.
template <class Look>
void unless_refused(LayoutCandidate& candidate, Look look) {
  try {
    look();
  } catch (const Error& error) {
    if (error.code == Exit::internal) throw;
    candidate.fate = Fate::refused;
    candidate.refusal = error.what();
  }
}

}  // namespace

LayoutSketch::LayoutSketch(const Config& known, const Outline& laid_out)
    : outline(laid_out),
      network(network_on_paper(known)),
      step(outline, network, row_of(known.schedule.kind).splits_backward),
      fills(outline.chunks == 1) {}

std::vector<int> LayoutSketch::first_block(const LayoutChoice& layout) const {
  return layout.cuts.empty() ? outline.first_block
                             : manual_cuts(layout.cuts, outline.all_blocks(), outline.all_chunks());
}

LayoutCandidate LayoutSketch::candidate(LayoutChoice layout, const std::vector<int>& first_block) const {
  if (first_block != outline.first_block) layout.cuts.assign(first_block.begin() + 1, first_block.end() - 1);
  const std::int64_t least = least_memory(outline, first_block, fills, layout.recompute);
  return {.layout = std::move(layout),
          .bound = step.of(first_block),
          .least_memory = least,
          .least_work = step.least_work() * num_ranks(layout.grid) / layout.grid.pipeline};
}

void simulate_layout(const Config& config, LayoutCandidate& candidate) {
  const std::int64_t limit = config.memory.device_limit;
  unless_refused(candidate, [&] {
    const Config known = with_layout(config, candidate.layout);
    const RunPlan plan = make_run_plan(known);
    take_times(candidate, plan.training.expected, plan.outline.stages);
    candidate.groups = plan.groups;
    if (plan.subnets) take_figures(known, plan, candidate);
    candidate.over.clear();
    for (int stage = 0; stage < plan.outline.stages; ++stage) {
      const BytesByClass& bytes = plan.most_memory(stage);
      const std::int64_t total = total_of(bytes);
      candidate.memory = std::max(candidate.memory, total);
      candidate.tapes = std::max(candidate.tapes, bytes[static_cast<int>(MemoryClass::activations)]);
      candidate.over.push_back(limit > 0 ? std::max<std::int64_t>(0, total - limit) : 0);
    }
    candidate.fate = limit == 0 || candidate.memory <= limit ? Fate::simulated : Fate::too_large;
  });
}

void time_layout(const Config& config, LayoutCandidate& candidate, PricedBlocks& blocks,
                 const StepPrice& price, double most) {
  if (row_of(config.model.kind).trains_subnets || row_of(candidate.layout.schedule).has_groups)
    return simulate_layout(config, candidate);
  unless_refused(candidate, [&] {
    const Config known = with_layout(config, candidate.layout);
    const Outline& outline = blocks.laid_out(known);
    require_few_actions(outline, known.schedule.kind);
    const LayoutSketch sketch(known, outline);
    const Order order = order_of_step(outline, known.schedule.kind, sketch.network);
    if (const std::int64_t limit = config.memory.device_limit; limit > 0) {
      candidate.least_memory = least_memory(outline, order, known.train.recompute);
      candidate.fate = Fate::too_large;
      if (candidate.least_memory > limit) return;
    }
    candidate.bound = std::max(candidate.bound, sketch.step.of(order));
    candidate.fate = Fate::slower;
    if (most > 0 && candidate.least_cost(price) > most) return;
    take_times(candidate, plan_step(outline, order, sketch.network).expected, outline.stages);
    candidate.fate = Fate::simulated;
  });
}

void try_layout(const Config& config, LayoutCandidate& candidate, const StepPrice& price, double best,
                double most, PricedBlocks& blocks) {
  time_layout(config, candidate, blocks, price, most);
  const bool leads = best == 0 || candidate.cost(price) < best;
  if (config.memory.device_limit > 0 && candidate.fate == Fate::simulated && leads && candidate.memory == 0)
    simulate_layout(config, candidate);
}

std::optional<LayoutCandidate> with_more_recomputed(const Config& config, const LayoutCandidate& full,
                                                    PricedBlocks& blocks) {
  const ScheduleRow& schedule = row_of(full.layout.schedule);
  if (full.layout.recompute == WhichBlocks::block || schedule.has_groups || schedule.splits_backward ||
      full.choices == most_choices)
    return std::nullopt;
  try {
    Config known = with_layout(config, full.layout);
    const std::optional<ChosenBlocks> fitting = blocks.fitting(known, full.over);
    if (!fitting || *fitting == full.layout.recompute) return std::nullopt;
    LayoutChoice layout = full.layout;
    layout.recompute = known.train.recompute = *fitting;
    const LayoutSketch sketch(known, blocks.laid_out(known));
    LayoutCandidate made = sketch.candidate(layout, sketch.first_block(layout));
    made.choices = full.choices + 1;
    return made;
  } catch (const Error& error) {
    if (error.code == Exit::internal) throw;
    return std::nullopt;
  }
}

}  // namespace mindpipe
