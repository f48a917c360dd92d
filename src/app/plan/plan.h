#pragma once
#include <set>
#include <string>

namespace mindpipe {

struct Config;

/// What a configuration would do on `ranks` ranks: blocks, tapes and memory of every stage, and the order of
/// its passes; or, simulated, how long a step takes and how much of it each stage is idle. `open`: settings
/// that are chosen before.
std::string plan_text(const Config& config, int ranks, bool simulate, const std::set<std::string>& open = {});

/// Whether figures are all that is printed: `--json -`.
bool are_alone(const std::string& json);
/// Writes figures where --json asks for them: into a file, or to stdout.
void write_figures(const std::string& json, const std::string& figures);

}  // namespace mindpipe
