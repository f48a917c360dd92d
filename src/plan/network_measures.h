#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

struct Config;

/// Measures of a space's networks that need no run: all objectives of a search but the loss. Each is a sum
/// over the parts that all networks share and the candidates that a choice takes.
class NetworkMeasures {
 public:
  explicit NetworkMeasures(const Config& supernet);

  /// `what`: not the loss.
  double of(Objective what, const std::vector<std::uint8_t>& choice) const;

 private:
  struct Measure {
    double shared = 0;
    std::vector<std::vector<double>> candidates;  ///< [block of the space][candidate]
  };
  Measure& at(Objective what) { return measures_[static_cast<std::size_t>(what)]; }
  void add_sizes(const Config& config);
  void add_operations(const Config& config);
  void add_latencies(Config config);

  std::array<Measure, rows_of(Objective{}).size()> measures_;
};

}  // namespace mindpipe
