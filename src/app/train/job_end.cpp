#include "app/train/job_end.h"

#include <ctime>

#include "app/run/slurm_job.h"

namespace mindpipe {

std::optional<double> seconds_to_end_in(const std::string& job, double now) {
  constexpr std::string_view key = " EndTime=";
  const std::size_t at = job.find(key);
  if (at == std::string::npos) return std::nullopt;
  std::tm time{};
  const char* const rest = strptime(job.c_str() + at + key.size(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  time.tm_isdst = -1;  // Slurm speaks of local time
  const std::time_t end = std::mktime(&time);
  if (end < 0) return std::nullopt;
  return static_cast<double>(end) - now;
}

std::optional<double> seconds_to_job_end() {
  const std::string job = slurm_job();
  if (job.empty()) return std::nullopt;
  return seconds_to_end_in(asked_of_scontrol(job), static_cast<double>(std::time(nullptr)));
}

}  // namespace mindpipe
