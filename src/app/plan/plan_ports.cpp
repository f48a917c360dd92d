#include "app/plan/plan_ports.h"

#include "app/run/json_line.h"
#include "config/config.h"
#include "config/models/trained_word.h"
#include "core/text.h"

namespace mindpipe {
std::string ports_text(const Config& config, const PortCosts& costs, PortChanges* changes) {
  std::string text;
  for (const PairCost& pair : costs.dear())
    if (changes != nullptr) changes->simulate_for(pair.holds);
  for (const PairCost& pair : costs.dear()) {
    const std::int64_t time = costs.time / costs.count;
    const auto change = changes != nullptr ? changes->best(time) : std::nullopt;
    text += pair_text(pair, costs, trained_word(config.model));
    if (change)
      text += fmt::format("; {} would take {}, {:.1f} % less", change->words,
                          human_seconds(1e-9 * static_cast<double>(change->time)),
                          100 * (1 - static_cast<double>(change->time) / static_cast<double>(time)));
    else if (changes != nullptr)
      text += fmt::format("; no other {} is faster on paper{}", changes->alternatives(),
                          config.memory.device_limit > 0 ? " within memory.device_limit" : "");
    text += '\n';
  }
  return text;
}

std::string ports_json(const PortCosts& costs) {
  std::string text = fmt::format("{{\"time_ns\": {}, \"count\": {}, \"pairs\": [", costs.time, costs.count);
  const char* between = "";
  for (const PairCost& pair : costs.pairs) {
    JsonLine line;
    line.add("waits", name_of(pair.waits)).add("holds", name_of(pair.holds));
    line.add("waited_ns", pair.waited).add("cost_ns", pair.cost);
    text += between + line.text();
    between = ",\n";
  }
  return text + "]}\n";
}

}  // namespace mindpipe
