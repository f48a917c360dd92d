#include "app/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "app/run/json_line.h"
#include "app/run/json_read.h"
#include "app/run/slurm_job.h"
#include "core/check.h"
#include "core/input_file.h"
#include "core/launcher.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

/// Field 22 of /proc/PID/stat, counted behind the program's name, which may hold anything; 0: there is no
/// such process, or it has ended and only waits for its parent to hear of it.
long long start_of(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(text.substr(end + 1));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i)
    if (i == 3 && (field == "Z" || field == "X")) return 0;
  return std::atoll(field.c_str());
}

std::optional<LockHolder> read_lock(const std::string& file) {
  const std::optional<std::string> text = read_text_if_there(file, largest_status);
  if (!text) return std::nullopt;
  auto members = read_json(*text);
  if (!members) return LockHolder{};  // cut short: nobody's
  auto& texts = members->texts;
  auto& integers = members->integers;
  return LockHolder{texts["host"],
                    texts["job"],
                    texts["restart"],
                    texts["cluster"],
                    static_cast<long>(integers["pid"]),
                    integers["started"]};
}

bool same(const LockHolder& a, const LockHolder& b) {
  return a.host == b.host && a.pid == b.pid && a.started == b.started;
}

}  // namespace

LockHolder this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return {host,
          environment("SLURM_JOB_ID"),
          environment("SLURM_RESTART_COUNT"),
          environment("SLURM_CLUSTER_NAME"),
          static_cast<long>(getpid()),
          start_of(getpid())};
}

bool is_gone(const LockHolder& holder, const LockHolder& us) {
  if (holder.pid <= 0) return true;
  if (same(holder, us)) return false;
  if (!holder.job.empty() && holder.job == us.job && holder.restart != us.restart) return true;
  if (holder.host != us.host)  // our Slurm may know, and another cluster's jobs have the same numbers
    return !holder.cluster.empty() && holder.cluster == us.cluster && is_plain_integer(holder.job) &&
           holder.job != us.job && is_job_over(holder.job);
  if (kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH) return true;
  return holder.started != 0 && start_of(holder.pid) != holder.started;
}

std::string try_lock(const std::string& file) {
  const File directory(
      open(std::filesystem::path(file).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory)
    flock(directory.get(), LOCK_EX);  // held until this function returns: one at a time looks and writes
  const LockHolder us = this_process();
  if (const auto holder = read_lock(file); holder && !is_gone(*holder, us))
    return fmt::format(
        "{}: another job holds this run directory (host {}, process {}{}); let it end, choose another "
        "run.dir, or remove this file if that job is dead",
        file, holder->host, holder->pid, holder->job.empty() ? "" : ", job " + holder->job);
  NewFile lock(file);
  const std::string text = JsonLine()
                               .add("host", us.host)
                               .add("pid", std::int64_t{us.pid})
                               .add("job", us.job)
                               .add("restart", us.restart)
                               .add("cluster", us.cluster)
                               .add("started", std::int64_t{us.started})
                               .text() +
                           "\n";
  lock.write(text.data(), text.size());
  lock.commit();
  return "";
}

void take_lock(const std::string& file) {
  const std::string holder = try_lock(file);
  MP_REQUIRE(holder.empty(), Exit::cannot_create, "{}", holder);
}

bool is_held(const std::string& file) {
  const auto holder = read_lock(file);
  return holder && !same(*holder, this_process()) && !is_gone(*holder, this_process());
}

void release_lock(const std::string& file) noexcept {
  try {
    if (const auto holder = read_lock(file); holder && same(*holder, this_process())) unlink(file.c_str());
  } catch (...) {  // a lock that stays is taken over by the next run: this process will be dead
  }
}

}  // namespace mindpipe
