#pragma once
#include <string>

namespace mindpipe {

/// Who holds a run directory.
struct LockHolder {
  std::string host, job, restart;  ///< the batch system's number, and how often it was requeued
  std::string cluster;             ///< on which the job has that number
  long pid = 0;
  long long started = 0;  ///< in clock ticks since boot: a pid alone may be another's by now
};
LockHolder this_process();

/// Whether a holder can no longer write, as `us` sees it: gone from this host, an earlier turn of our job, or
/// of another job of our cluster that is over, as scontrol says.
bool is_gone(const LockHolder& holder, const LockHolder& us);

/// Writes `file` for this process and returns nothing, or a sentence that names the holder. Taking over the
/// lock of a dead holder is safe against others that do the same.
std::string try_lock(const std::string& file);
/// try_lock, or refuses with its sentence.
void take_lock(const std::string& file);
/// Whether a process that may still write, and is not this one, holds the lock.
bool is_held(const std::string& file);
/// Removes the lock if it is this process's.
void release_lock(const std::string& file) noexcept;

}  // namespace mindpipe
