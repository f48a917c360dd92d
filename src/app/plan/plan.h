#pragma once
#include <set>
#include <string>

namespace mindpipe {

struct Config;
struct RunPlan;
class PortChanges;

/// What a planned run would do on `ranks` ranks: blocks, tapes and memory of every stage, and the order of
/// its passes; with `changes`, which it may recommend, simulated: how long a step takes and how much of it
/// each stage is idle. `given`: what the configuration was chosen from.
std::string plan_text(const Config& given, const Config& config, const RunPlan& plan, int ranks,
                      PortChanges* changes);

/// Whether figures are all that is printed: `--json -`.
bool are_alone(const std::string& json);
/// Writes figures where --json asks for them: into a file, or to stdout.
void write_figures(const std::string& json, const std::string& figures);

}  // namespace mindpipe
