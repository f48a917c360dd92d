#pragma once
#include <optional>
#include <string>

namespace mindpipe {

/// Seconds from now until Slurm ends this job, as scontrol says; none: no Slurm, no limit, no answer within
/// ten seconds. To be asked before MPI is up, since it starts a program.
std::optional<double> seconds_to_job_end();

/// Seconds until the EndTime of a job in what scontrol prints of it; `now`: seconds since 1970.
std::optional<double> seconds_to_end_in(const std::string& job, double now);

}  // namespace mindpipe
