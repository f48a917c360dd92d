#include "app/train/job_end.h"

#include <cstdio>
#include <ctime>

#include "core/launcher.h"
#include "core/text.h"

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

std::string slurm_job() {
  // The job id of one task of an array is also that of the whole array.
  const std::string array = environment("SLURM_ARRAY_JOB_ID"), task = environment("SLURM_ARRAY_TASK_ID");
  if (is_plain_integer(array) && is_plain_integer(task)) return array + "_" + task;
  const std::string job = environment("SLURM_JOB_ID");
  return is_plain_integer(job) ? job : "";
}

std::optional<double> seconds_to_job_end() {
  const std::string job = slurm_job();
  if (job.empty()) return std::nullopt;
  std::FILE* pipe =
      popen(("timeout 10 scontrol --oneliner show job " + job + " 2>/dev/null </dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  constexpr std::size_t longest = 1 << 16;
  std::string text;
  for (int c; text.size() < longest && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return seconds_to_end_in(text, static_cast<double>(std::time(nullptr)));
}

}  // namespace mindpipe
