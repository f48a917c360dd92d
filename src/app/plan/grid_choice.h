#pragma once
#include <string>
#include <vector>

#include "config/open_settings.h"

namespace mindpipe {

/// read_config for a job of `ranks` ranks (0: as many as the launcher says). A degree that is refused by
/// itself, because heads do not divide for instance, is refused with the grids that fit. `written` becomes
/// the settings that file and overrides name, and leave open.
Config read_for_ranks(const std::string& file, const std::vector<std::string>& overrides, int ranks,
                      WrittenKeys& written);

/// The configuration on a job of `ranks` ranks; what does not fit is refused with the nearest that do.
Config with_grid(const Config& config, int ranks);
/// The configuration of a job that only reads, which needs no particular grid: its own degrees where they fit
/// the job, else the nearest that do. The arithmetic stays: logical shards are those of the configuration.
Config with_any_grid(const Config& config, int ranks);
/// The configuration of a job of `ranks` ranks, for planning on one process: where threads are not given, as
/// many as each rank would have if all of them were on this machine. Settings that are `open` are searched.
Config on_paper(const Config& config, int ranks, const std::set<std::string>& open = {});
/// Threads of each rank of such a job.
int threads_on_paper(const Config& config, int ranks);

/// The product of the degrees; auto counts as 1.
int ranks_of_grid(const Config& config);

}  // namespace mindpipe
