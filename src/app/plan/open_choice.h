#pragma once
#include <set>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "config/open_settings.h"
#include "plan/layout_search.h"
#include "plan/port_changes.h"

namespace mindpipe {

struct RunPlan;

/// What plan --search may choose: the settings of a layout that no file or command line names, or that they
/// leave open (auto). `train.micro_batch`, which changes bits, has to be left open.
SearchFreedom freedom_of(const Config& config, const WrittenKeys& written);

/// What a training may choose: the settings that are left open alone. Refuses what no search chooses for a
/// model of this kind.
SearchFreedom freedom_to_train(const Config& config, const std::set<std::string>& open);

/// How many degrees of the grid are left to the program.
int open_degrees(const Config& config);

/// Whether a job's configuration asks for a search: something is left open, or several degrees are.
bool is_searched(const Config& config, const std::set<std::string>& open);

/// Lets plan.batches be those that are compared where it is left open.
void take_open_batches(Config& config, const std::set<std::string>& open);

/// What a job of `ranks` ranks gives the settings that are left open, `open` and degrees of the grid: the
/// best on paper by plan.objective, as key=value. Fails where nothing fits, or is allowed; gives none where
/// only degrees are open and no grid is allowed.
std::vector<std::string> best_settings(const Config& config, const std::set<std::string>& open, int ranks);

/// What a file leaves open, for changes of what was chosen from it.
OpenSettings open_settings(const Config& given, const std::set<std::string>& open, int ranks);

/// Whether it is open what becomes of tapes.
bool chooses_tapes(const Config& given, const std::set<std::string>& open);
/// What binds a plan whose tapes were left open, what becomes of them, and what other choices would take;
/// empty: none were.
std::string tapes_chosen(const Config& given, const Config& chosen, const RunPlan& plan,
                         const std::set<std::string>& open);

/// The configuration of a job where what is left open is the best on paper. Rank 0 searches, and tells.
/// Collective over the job.
Config with_best_settings(const Config& config, const std::set<std::string>& open, const World& world);

}  // namespace mindpipe
