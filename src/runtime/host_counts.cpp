#include "runtime/host_counts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "core/clock.h"

namespace mindpipe {
namespace {

/// The number behind so many spaces of /proc/thread-self/schedstat: nanoseconds run, nanoseconds of delay,
/// stretches run; 0 where there is no such file.
std::int64_t run_delay_now() {
  char text[128];
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  const std::string_view line(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t second = line.find(' ');
  std::int64_t delay = 0;
  if (second != std::string_view::npos)
    std::from_chars(line.data() + second + 1, line.data() + line.size(), delay);
  return delay;
}

}  // namespace

HostCounts host_counts_now() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return {.run_delay = run_delay_now(),
          .switches = used.ru_nivcsw,
          .faults = used.ru_majflt,
          .migrations = sched_getcpu(),
          .outside = now_ns()};
}

HostCounts counts_between(const HostCounts& start, const HostCounts& end, std::int64_t before) {
  return {.run_delay = end.run_delay - start.run_delay,
          .switches = end.switches - start.switches,
          .faults = end.faults - start.faults,
          .migrations = end.migrations != start.migrations ? 1 : 0,
          .outside = before == 0 ? 0 : start.outside - before};
}

}  // namespace mindpipe
