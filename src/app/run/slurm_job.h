#pragma once
#include <string>

namespace mindpipe {

/// This job as scontrol knows it, a task of an array by its own name; empty: no Slurm.
std::string slurm_job();

/// What scontrol says of a job, complaints among it; empty: there is no scontrol, or no answer within ten
/// seconds.
std::string asked_of_scontrol(const std::string& job);

/// Whether a job is over, by what scontrol says of it. Slurm forgets jobs some minutes behind their end.
bool is_over(const std::string& said);
/// Whether a job is over, as scontrol says now, or has said within the last minute.
bool is_job_over(const std::string& job);

}  // namespace mindpipe
