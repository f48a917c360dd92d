#pragma once
#include <vector>

#include "core/machine_memory.h"
#include "plan/run_plan.h"

namespace mindpipe {

struct MemoryConfig;

/// Refuses a run of which some rank needs more of its device, or of its host, than `config` allows, and says
/// of a step what would fit.
void require_within(const RunPlan& plan, const Config& config);
/// Whether require_within would pass.
bool is_within(const RunPlan& plan, const MemoryConfig& limits);
/// Refuses, with the ledger, a run of which some rank needs more than `limit` bytes (0: no limit).
void require_fit(const RunPlan& plan, std::int64_t limit);
/// Refuses a run of which some rank keeps more than `limit` bytes on its host (0: no limit).
void require_host_fit(const RunPlan& plan, std::int64_t limit);
/// Refuses a step in which no segment of the swapped blocks ever waits on the host.
void require_stashes(const RunPlan& plan, const ChosenBlocks& swapped);
/// Whether require_fit would pass.
bool fits(const RunPlan& plan, std::int64_t limit);
/// Refuses ranks that share a machine and together need more memory than it has.
void require_fit_here(const RunPlan& plan, const std::vector<Coord>& ranks, const MemoryLimit& here);

/// Whether require_fit_here would pass.
bool fits_here(const RunPlan& plan, const std::vector<Coord>& ranks, const MemoryLimit& here);

}  // namespace mindpipe
