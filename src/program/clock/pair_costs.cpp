#include "program/clock/pair_costs.h"

#include <algorithm>

#include "core/text.h"

namespace mindpipe {

const char* words_of(TrafficClass traffic) {
  switch (traffic) {
    case TrafficClass::scalars:
      return "scalars";
    case TrafficClass::tensor:
      return "sums inside passes (tensor)";
    case TrafficClass::pipeline:
      return "messages of the pipeline";
    case TrafficClass::moves:
      return "moves of units (supernet)";
    case TrafficClass::values:
      return "gathers of values (data)";
    case TrafficClass::gradients:
      return "sums of gradients (data)";
    case TrafficClass::files:
      return "files";
  }
  return "";
}

std::vector<PairCost> PortCosts::dear() const {
  constexpr std::int64_t dear_share = 200;  // half a percent
  std::vector<PairCost> dear;
  for (const PairCost& pair : pairs)
    if (pair.cost > 0 && pair.cost * dear_share >= time) dear.push_back(pair);
  return dear;
}

PortCosts port_costs(const TimeAtPorts& time) {
  std::vector<Ports::Left> transfers;
  PortCosts costs;
  costs.time = time({}, [&](const Ports::Left& left) { transfers.push_back(left); });
  TimesByPair waited = waits_at_ports(transfers);
  for (const TrafficClass waits : traffic_classes)
    for (const TrafficClass holds : traffic_classes) {
      PairCost pair{waits, holds, at(waited, waits, holds)};
      if (waits == holds || pair.waited == 0) continue;
      pair.cost = costs.time - time(Unseen{.by = waits, .what = holds}, nullptr);
      costs.pairs.push_back(pair);
    }
  std::stable_sort(costs.pairs.begin(), costs.pairs.end(),
                   [](const PairCost& a, const PairCost& b) { return a.cost > b.cost; });
  return costs;
}

std::string pair_text(const PairCost& pair, const PortCosts& costs, const char* of) {
  const auto each = [&](std::int64_t time) {
    return human_seconds(1e-9 * static_cast<double>(time) / static_cast<double>(costs.count));
  };
  return fmt::format("{} hold up {}: {} of a {} of {}", words_of(pair.holds), words_of(pair.waits),
                     each(pair.cost), of, each(costs.time));
}

}  // namespace mindpipe
