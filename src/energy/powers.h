#pragma once
#include <string>
#include <vector>

namespace mindpipe {

/// Watts of a rank: while it computes, while it waits, while nothing runs, and of what stands beside it
/// (memory, fans, network) all the time.
struct Powers {
  double compute = 0, wait = 0, idle = 0, other = 0;
  double busy_rank() const { return compute + other; }
  double waiting_rank() const { return wait + other; }
};

/// Estimated powers of a rank on a described device; a device without figures has those of a core.
/// `threads`: processors that a rank of a core's kind uses.
Powers estimated_powers(const std::string& device, int threads);

/// Joules of a rank that computed for `busy` of `seconds`.
inline double estimated_joules(const Powers& powers, double busy, double seconds) {
  return powers.busy_rank() * busy + powers.waiting_rank() * (seconds - busy);
}

/// What one meter measured in a window, beside what its ranks did meanwhile: seconds of all of them together.
struct EnergyWindow {
  double joules = 0, busy = 0, rest = 0;
};

/// Watts of a busy rank and of one that is not, as far as windows tell them apart.
struct FittedPowers {
  double busy = 0, rest = 0;
  bool fitted = false;      ///< false: the ratio is the estimate's, and the sum is the measured one
  std::size_t windows = 0;  ///< windows that were looked at
};

/// The fewest windows that are looked at: fewer tell no powers.
inline constexpr std::size_t fewest_windows = 8;

/// Watts that explain the windows: least squares where these are sure to a tenth, else the estimate, scaled
/// so that the windows' energy comes out.
FittedPowers fit_powers(const std::vector<EnergyWindow>& windows, const Powers& estimate);

/// What a node's processors used in an interval, and whose the work was.
struct NodeInterval {
  double joules = 0, seconds = 0;
  double idle_watts = 0;             ///< watts of the whole node while nothing runs
  double job_cpu = 0, node_cpu = 0;  ///< seconds of processors: of the job's processes, and of all
  double there_cpu = 0;              ///< seconds of all processes on the processors that the job may use
  int job_processors = 0, node_processors = 0;
};

/// The job's part of a node's energy. A node that runs nothing else is the job's. On a shared one the job has
/// a part by processor time of what is above the idle power, and of that the part of the time that it keeps
/// processors busy, or of all the time of processors that nobody else uses. Parts of jobs that run at once
/// add up to the whole at most.
double part_of_job(const NodeInterval& node);

}  // namespace mindpipe
