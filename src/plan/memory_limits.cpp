#include "plan/memory_limits.h"

#include "config/config.h"
#include "core/text.h"
#include "plan/what_would_fit.h"

namespace mindpipe {
namespace {

constexpr const char* usual_advice =
    "take a smaller train.micro_batch or more stages, or let train.recompute and train.swap be auto";

void require_below(const RunPlan& plan, const BytesByClass& bytes, int stage, std::int64_t limit,
                   const char* name_of_limit, const std::string& advice = usual_advice) {
  const std::int64_t total = total_of(bytes);
  const Workspace& kernels = plan.footprints[stage].passes.backend;
  const std::string estimated = kernels.attention_is_estimated
                                    ? fmt::format(" (attention's {:.1f} MiB of the workspace are estimated)",
                                                  static_cast<double>(kernels.attention) / 1048576.0)
                                    : "";
  MP_REQUIRE(limit == 0 || total <= limit, Exit::out_of_memory,
             "memory: a rank of stage {} will need {:.1f} MiB, and {} is {:.1f} MiB; {}. Predicted{}:\n{}",
             stage, static_cast<double>(total) / 1048576.0, name_of_limit,
             static_cast<double>(limit) / 1048576.0, advice, estimated, ledger_of(bytes));
}

/// What the rank of a stage that needs the most has on its device.
BytesByClass on_device(const RunPlan& plan, int stage) {
  BytesByClass bytes = plan.most_memory(stage);
  if (plan.copy_in_host) bytes[static_cast<int>(MemoryClass::copy)] = 0;
  return bytes;
}

void require_on_device(const RunPlan& plan, std::int64_t limit, const std::string& advice) {
  for (int stage = 0; stage < static_cast<int>(plan.memory.size()); ++stage)
    require_below(plan, on_device(plan, stage), stage, limit, "memory.device_limit", advice);
}

std::string advice_on_step(const Config& config) {
  const LayoutChoice layout = layout_of(config);
  return what_would_fit(config, layout, false) +
         (fits_with_other_tapes(config, layout) ? "; train.recompute and train.swap may be auto" : "");
}

}  // namespace

void require_within(const RunPlan& plan, const Config& config) {
  const std::int64_t limit = config.memory.device_limit;
  if (!fits(plan, limit))
    require_on_device(plan, limit, plan.trains_steps() ? advice_on_step(config) : usual_advice);
  require_host_fit(plan, config.memory.host_limit);
}

bool is_within(const RunPlan& plan, const MemoryConfig& limits) {
  for (int stage = 0; stage < static_cast<int>(plan.host_memory.size()); ++stage)
    if (limits.host_limit > 0 && plan.most_on_host(stage) > limits.host_limit) return false;
  return fits(plan, limits.device_limit);
}

void require_fit(const RunPlan& plan, std::int64_t limit) { require_on_device(plan, limit, usual_advice); }

void require_host_fit(const RunPlan& plan, std::int64_t limit) {
  const auto bytes = [](std::int64_t count) { return human_bytes(static_cast<double>(count)); };
  for (int stage = 0; stage < static_cast<int>(plan.host_memory.size()); ++stage) {
    const std::int64_t all = plan.most_on_host(stage), tapes = plan.segments_on_host(stage);
    if (limit == 0 || all <= limit) continue;
    MP_REQUIRE(all - tapes <= limit, Exit::out_of_memory,
               "memory: a rank of stage {} will keep {} of masters and moments on its host, and "
               "memory.host_limit is {}; take more stages, train.zero: 1, or memory.optimizer: device",
               stage, bytes(all - tapes), bytes(limit));
    fail(Exit::out_of_memory,
         "memory: a rank of stage {} will keep {} of swapped tapes{} on its host, and memory.host_limit is "
         "{}; "
         "swap fewer blocks (train.swap), or take a smaller train.micro_batch",
         stage, bytes(tapes),
         all > tapes ? fmt::format(" and {} of masters and moments", bytes(all - tapes)) : "", bytes(limit));
  }
}

void require_stashes(const RunPlan& plan, const ChosenBlocks& swapped) {
  if (!plan.trains_steps() || !swapped.any()) return;
  for (const std::vector<Action>& list : plan.training.program.ranks)
    for (const Action& action : list)
      if (action.kind == ActionKind::stash) return;
  fail(Exit::bad_configuration,
       "train.swap is {}, but every stage with such a block has one tape in flight: each backward comes "
       "directly "
       "behind its forward, and nothing waits that could be swapped (take more stages or micro-batches, name "
       "blocks of earlier stages, or say train.swap=none)",
       swapped.text());
}

bool fits(const RunPlan& plan, std::int64_t limit) {
  for (int stage = 0; stage < static_cast<int>(plan.memory.size()); ++stage)
    if (limit > 0 && total_of(on_device(plan, stage)) > limit) return false;
  return true;
}

void require_fit_here(const RunPlan& plan, const std::vector<Coord>& ranks, const MemoryLimit& here) {
  std::int64_t together = 0;
  for (const Coord& rank : ranks) {
    require_below(plan, plan.memory_of(rank), rank.pipeline, here.bytes, here.name.c_str());
    together += total_of(plan.memory_of(rank)) + plan.host_memory[rank.pipeline][rank.data];
  }
  MP_REQUIRE(
      here.bytes == 0 || together <= here.bytes, Exit::out_of_memory,
      "memory: the {} ranks on this machine will need {:.1f} MiB together, and {} is {:.1f} MiB; start fewer "
      "of them on one machine, or take a smaller train.micro_batch or train.recompute: block",
      ranks.size(), static_cast<double>(together) / 1048576.0, here.name,
      static_cast<double>(here.bytes) / 1048576.0);
}

bool fits_here(const RunPlan& plan, const std::vector<Coord>& ranks, const MemoryLimit& here) {
  std::int64_t together = 0;
  for (const Coord& rank : ranks)
    together += total_of(plan.memory_of(rank)) + plan.host_memory[rank.pipeline][rank.data];
  return here.bytes == 0 || together <= here.bytes;
}

}  // namespace mindpipe
