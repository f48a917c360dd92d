#pragma once
#include <set>
#include <string>

namespace mindpipe {

struct Config;
struct Outline;
struct RunPlan;
class PortChanges;

/// What a planned run would do on `ranks` ranks: blocks, tapes and memory of every stage, and the order of
/// its passes; with `changes`, which it may recommend, simulated: how long a step takes and how much of it
/// each stage is idle. `given`: what the configuration was chosen from.
std::string plan_text(const Config& given, const Config& config, const RunPlan& plan, int ranks,
                      PortChanges* changes);

/// "0-4": the blocks of a stage.
std::string blocks_of_stage(const Outline& outline, int rank);
/// How wide a column is in which the blocks of each stage stand.
std::size_t width_of_blocks(const Outline& outline);
/// What passes were priced by: "the device h200 (device.description)", or a profile, with where it was
/// measured and how much of the plan it has no prices for.
std::string prices_text(const Config& config, const RunPlan& plan);
/// What messages were priced for.
std::string links_text(const Config& config, int ranks);
/// "a step that is measured should lie between 228.0 ms and 308.0 ms, nine times of ten".
std::string range_text(const Config& config, const RunPlan& plan);

/// Whether figures are all that is printed: `--json -`.
bool are_alone(const std::string& json);
/// Writes figures where --json asks for them: into a file, or to stdout.
void write_figures(const std::string& json, const std::string& figures);

}  // namespace mindpipe
