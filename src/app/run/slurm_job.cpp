#include "app/run/slurm_job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "core/clock.h"
#include "core/launcher.h"
#include "core/text.h"

namespace mindpipe {

std::string slurm_job() {
  // The job id of one task of an array is also that of the whole array.
  const std::string array = environment("SLURM_ARRAY_JOB_ID"), task = environment("SLURM_ARRAY_TASK_ID");
  if (is_plain_integer(array) && is_plain_integer(task)) return array + "_" + task;
  const std::string job = environment("SLURM_JOB_ID");
  return is_plain_integer(job) ? job : "";
}

std::string asked_of_scontrol(const std::string& job) {
  std::FILE* pipe =
      popen(("timeout -k 1 10 scontrol --oneliner show job " + job + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  constexpr std::size_t longest = 1 << 16;
  std::string text;
  for (int c; text.size() < longest && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

bool is_over(const std::string& said) {
  if (said.find("Invalid job id") != std::string::npos) return true;
  constexpr std::string_view key = "JobState=";
  constexpr std::array ends{"COMPLETED", "CANCELLED", "FAILED",   "TIMEOUT",      "NODE_FAIL",
                            "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"};
  std::size_t at = said.find(key);
  if (at == std::string::npos) return false;
  for (; at != std::string::npos; at = said.find(key, at + 1)) {  // each task of an array
    const std::string_view state = std::string_view(said).substr(at + key.size());
    if (std::none_of(ends.begin(), ends.end(), [&](std::string_view end) { return state.starts_with(end); }))
      return false;
  }
  return true;
}

bool is_job_over(const std::string& job) {
  struct Answer {
    std::int64_t at = 0;
    bool over = false;
  };
  constexpr double fresh = 60;  // seconds: a search looks again and again whether others' locks are held
  static std::map<std::string, Answer> known;
  const auto [answer, is_new] = known.try_emplace(job);
  if (is_new || seconds_since(answer->second.at) > fresh)
    answer->second = {now_ns(), is_over(asked_of_scontrol(job))};
  return answer->second.over;
}

}  // namespace mindpipe
