#pragma once
#include <malloc.h>

#include <fstream>

#include "runtime/predicted.h"

namespace mindpipe {

/// Blocks come from the system and go back to it, so that none serves a second time and no memory of theirs
/// is left with malloc.
inline const bool blocks_go_back = mallopt(M_MMAP_THRESHOLD, 128 << 10) == 1;

/// A line of /proc/self/status that counts KiB, in bytes.
inline std::int64_t status_bytes(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == line + ":") {
      std::int64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  return 0;
}
inline std::int64_t resident_bytes() { return status_bytes("VmRSS"); }
inline std::int64_t high_water_bytes() { return status_bytes("VmHWM"); }

/// Sets the process's high-water mark back to what is resident now, and says how much that is. Where the
/// system does not allow it, the mark stays where it is.
inline std::int64_t high_water_after_reset() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  return high_water_bytes();
}

/// Large enough that what code and small objects take is far below 5 %, small enough for seconds.
inline Config wide_run() {
  Config config = small_run();
  text_model(config).width = 512;
  text_model(config).mlp_width = 1024;
  text_model(config).heads = 8;
  text_model(config).layers = 3;
  text_model(config).context = 128;
  text_model(config).vocabulary = 1000;
  return config;
}

/// Most of it is one tensor: a table of many words, each of few numbers.
inline Config wordy_run() {
  Config config = small_run();
  text_model(config).width = 64;
  text_model(config).mlp_width = 128;
  text_model(config).layers = 1;
  text_model(config).context = 32;
  text_model(config).vocabulary = 50257;
  config.train.batch = 4;
  return config;
}

/// Where the growth of this process's VmHWM in a run is more than 5 % from the plan. What is not MindPipe's
/// is there before the measurement begins: a run of the same layout on a narrower model, with messages of its
/// kinds and sizes of thousands of bytes, has made MPI connect the ranks and fill its pools, threads start,
/// and code be read.
inline std::string growth_complaint(const Config& config, const World& world, const RunPlan& plan) {
  {
    Config narrow = config;
    text_model(narrow).width /= 4;
    text_model(narrow).mlp_width /= 4;
    Worker worker(narrow, world);
    worker.waiting().set_crowded(true);
    train_a_little(worker, 1);
  }
  const std::int64_t before = high_water_after_reset();
  Worker worker(config, world, plan);
  worker.waiting().set_crowded(true);
  train_a_little(worker, 1);
  const std::int64_t grown = high_water_bytes() - before,
                     predicted = total_of(plan.memory_of(worker.layout().coord));
  if (std::abs(static_cast<double>(grown) / static_cast<double>(predicted) - 1) <= 0.05) return {};
  return fmt::format("VmHWM grew by {} bytes, {} predicted (above {})", grown, predicted, before);
}

}  // namespace mindpipe
