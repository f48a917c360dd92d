#pragma once
#include <cstdint>
#include <memory>

#include "energy/meter.h"

namespace mindpipe {

/// Energy of processors and memory from the kernel's powercap tree (RAPL).
class Powercap : public Meter {
 public:
  /// A counter of the tree.
  struct Domain {
    std::string name, directory;
    std::uint64_t range = 0;  ///< what it counts before it begins at 0 again
    std::uint64_t last = 0;
    std::uint64_t microjoules = 0;  ///< since the beginning
    double watts = 0;               ///< over the last interval
    std::int64_t begin_ns = 0, last_ns = 0;
    int still = 0;  ///< readings without a change, one after the other
    bool gone = false;
  };

  /// Looks below `root` (/sys/class/powercap) for what can be read. Where that is nothing there is no meter,
  /// and `why` says why.
  static std::unique_ptr<Powercap> open(const std::string& root, std::string& why);

  double joules() override;
  double seconds_to_next() const override;
  bool is_own() const override { return false; }
  std::vector<std::string> troubles() const override;
  std::string describe() const override;

 private:
  void read(Domain& domain);

  std::vector<Domain> domains_;
  std::vector<std::string> troubles_;
};

/// The power that packages, memory and the platform may draw, as the system has it now: "package-0: 225 W
/// (long_term)", or why that is not known; the counters need not be readable.
std::vector<std::string> powercap_caps(const std::string& root);

}  // namespace mindpipe
