#pragma once
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mindpipe {

/// A powercap tree in a directory that goes with it.
struct MadePowercap {
  std::string root;
  MadePowercap() {
    char name[] = "/tmp/powercapXXXXXX";
    root = mkdtemp(name);
  }
  MadePowercap(MadePowercap&& other) noexcept : root(std::exchange(other.root, "")) {}
  MadePowercap& operator=(MadePowercap&&) = delete;
  ~MadePowercap() {
    if (!root.empty()) std::filesystem::remove_all(root);
  }
  /// Writes a file of a zone in one move, as a reader of sysfs sees it.
  void put(const std::string& zone, const std::string& file, const std::string& text) const {
    const std::string directory = root + "/" + zone, path = directory + "/" + file;
    std::filesystem::create_directories(directory);
    std::ofstream(path + ".new") << text << "\n";
    std::filesystem::rename(path + ".new", path);
  }
  void zone(const std::string& zone, const std::string& name, std::uint64_t now,
            std::uint64_t range = 262143328850) const {
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", std::to_string(range));
    count(zone, now);
  }
  void count(const std::string& zone, std::uint64_t now) const {
    put(zone, "energy_uj", std::to_string(now));
  }
};

/// A node of two packages with memory that takes 100 W all the time, in a tree whose counters go on by
/// themselves, over their ends too. Cores and the platform, which count the same once more, count five times
/// as fast.
class RunningPowercap {
 public:
  static constexpr double watts = 100;

  RunningPowercap() {
    count();
    thread_ = std::thread([this] {
      while (!ended_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        count();
      }
    });
  }
  ~RunningPowercap() {
    ended_ = true;
    thread_.join();
  }
  const std::string& root() const { return tree_.root; }

 private:
  struct Zone {
    const char *zone, *name;
    double watts;
  };
  void count() {
    static const std::vector<Zone> zones{
        {"intel-rapl:0", "package-0", 60}, {"intel-rapl:0:0", "core", 300},
        {"intel-rapl:0:1", "dram", 5},     {"intel-rapl:1", "package-1", 30},
        {"intel-rapl:1:0", "core", 150},   {"intel-rapl:1:1", "dram", 5},
        {"intel-rapl:2", "psys", 500},     {"intel-rapl-mmio:0", "package-0", 60}};
    constexpr std::uint64_t range = 100'000'000;  // of package 0 over in less than two seconds
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    for (const Zone& zone : zones) {
      const auto now = static_cast<std::uint64_t>(zone.watts * seconds * 1e6) % range;
      if (seconds_ == 0) tree_.zone(zone.zone, zone.name, now, range);
      else tree_.count(zone.zone, now);
    }
    seconds_ = seconds;
  }

  MadePowercap tree_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace mindpipe
