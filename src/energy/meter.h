#pragma once
#include <string>
#include <vector>

namespace mindpipe {

/// A counter of a node's energy.
class Meter {
 public:
  virtual ~Meter() = default;
  /// Joules since the meter was made; reads the counters.
  virtual double joules() = 0;
  /// Seconds until the counters have to be read again so that no wrap is missed or passes unwatched.
  virtual double seconds_to_next() const { return 1; }
  /// Whether the energy is that of devices which the job has for itself.
  virtual bool is_own() const = 0;
  /// Whether others used its devices, too, so that the job's part is an estimate.
  virtual bool is_divided() const { return false; }
  /// What did not go well, a sentence each.
  virtual std::vector<std::string> troubles() const { return {}; }
  /// "2 packages, 2 dram", for people.
  virtual std::string describe() const = 0;
};

}  // namespace mindpipe
