#pragma once
#include <string>

#include "plan/run_plan.h"

namespace mindpipe {

/// The memory of a rank by class in columns, its sum in the last: their names, and the numbers below them.
std::string memory_head();
std::string memory_row(const BytesByClass& bytes);

/// What ranks keep on their hosts; empty where they keep nothing there.
std::string host_text(const RunPlan& plan);

/// What it costs that a rank's logical shards are no whole subtree of their sums; empty where they are.
std::string roots_text(const Config& config, const RunPlan& plan);

/// What several tensor ranks compute alike: its share of each block's operations, blocks of one kind as one;
/// empty where nothing is, or where there is one such rank.
std::string undivided_text(const Config& config);

/// On a GPU: what passes spend their time in there, as its description says; else empty.
std::string time_text(const Config& config);
/// On a GPU: what attention takes there, who says so, and the settings that it depends on; else empty.
std::string attention_text(const Config& config, const RunPlan& plan);

/// What a run would need: parameters per block, memory by class, operations per token. Allocates nothing.
std::string dry_run_text(const Config& config, const RunPlan& plan);
/// Prints what a run would need, and fails if it does not fit into memory.device_limit. `open`: settings
/// that are searched first.
void dry_run(const Config& config, int ranks, const std::set<std::string>& open = {});

}  // namespace mindpipe
