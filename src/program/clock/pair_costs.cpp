#include "program/clock/pair_costs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/text.h"

namespace mindpipe {

const char* words_of(TrafficClass traffic, Summed summed) {
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
      return summed == Summed::over_data      ? "sums of gradients (data)"
             : summed == Summed::shared_units ? "sums of gradients (shared units)"
                                              : "sums of gradients (data, shared units)";
    case TrafficClass::files:
      return "files";
  }
  return "";
}

namespace {

/// Nanoseconds in which sums over data, and those between ranks that share units, wait for a class or hold
/// it.
struct SummedTimes {
  std::int64_t over_data = 0, shared_units = 0;

  /// Sums that make less than a tenth of the time are not said.
  Summed summed() const {
    if (shared_units <= over_data / 9) return Summed::over_data;
    return over_data <= shared_units / 9 ? Summed::shared_units : Summed::both;
  }
};

using SummedByPair = std::map<std::pair<TrafficClass, TrafficClass>, SummedTimes>;

void count_summed(SummedByPair& all, const Ports::Left& waits, const Ports::Left& holds, std::int64_t time) {
  for (const Ports::Transfer& one : {waits.transfer, holds.transfer}) {
    if (one.traffic != TrafficClass::gradients) continue;
    SummedTimes& times = all[{waits.transfer.traffic, holds.transfer.traffic}];
    (one.from == one.to ? times.over_data : times.shared_units) += time;
  }
}

}  // namespace

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
  SummedByPair summed;
  each_wait_at_ports(transfers, [&](const Ports::Left& one, const Ports::Left& other, std::int64_t lasts) {
    count_summed(summed, one, other, lasts);
  });
  for (const TrafficClass waits : traffic_classes)
    for (const TrafficClass holds : traffic_classes) {
      PairCost pair{waits, holds, at(waited, waits, holds)};
      if (waits == holds || pair.waited == 0) continue;
      pair.summed = summed[{waits, holds}].summed();
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
  return fmt::format("{} hold up {}: {} of a {} of {}", words_of(pair.holds, pair.summed),
                     words_of(pair.waits, pair.summed), each(pair.cost), of, each(costs.time));
}

}  // namespace mindpipe
