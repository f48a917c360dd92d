#include "plan/network_measures.h"

#include "config/config.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

double seconds_of(const BlockCost& cost) { return 1e-9 * static_cast<double>(cost.forward); }

}  // namespace

NetworkMeasures::NetworkMeasures(const Config& supernet) {
  Config config = supernet;
  config.grid = {};  // one rank has all of each product
  const Space& space = config.model.supernet.space;
  for (Measure& measure : measures_)
    for (int block = 0; block < space.blocks(); ++block)
      measure.candidates.emplace_back(space.candidates(block).size(), 0.0);
  add_sizes(config);
  add_operations(config);
  add_latencies(config);
}

double NetworkMeasures::of(Objective what, const std::vector<std::uint8_t>& choice) const {
  MP_CHECK(what != Objective::loss, "the loss of a network is not known without running it");
  const Measure& measure = measures_[static_cast<std::size_t>(what)];
  double sum = measure.shared;
  for (std::size_t block = 0; block < choice.size(); ++block) sum += measure.candidates[block][choice[block]];
  return sum;
}

void NetworkMeasures::add_sizes(const Config& config) {
  CostModel costs(config, make_layout(config, {}));
  const Model& model = costs.model();
  const auto bytes_each = static_cast<double>(bytes_of(compute_dtype(config.train)));
  const auto add = [&](int unit, const auto& to) {
    const auto parameters = static_cast<double>(model.units()[unit]->parameters());
    to(at(Objective::parameters)) += parameters;
    to(at(Objective::bytes)) += parameters * bytes_each;
  };
  for (int unit = 0; unit < static_cast<int>(model.units().size()); ++unit)
    if (model.is_shared(unit)) add(unit, [](Measure& measure) -> double& { return measure.shared; });
  for (const Model::Block& block : model.blocks())
    for (const Model::Block::Choice& choice : block.choices)
      for (std::size_t number = 0; number < choice.units.size(); ++number)
        if (choice.units[number] >= 0)
          add(choice.units[number],
              [&](Measure& measure) -> double& { return measure.candidates[choice.place][number]; });
}

void NetworkMeasures::add_operations(const Config& config) {
  CostModel costs(config, make_layout(config, {}));
  const double tokens = static_cast<double>(config.train.micro_batch * costs.model().counted().of_sample);
  Measure& measure = at(Objective::operations);
  for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block) {
    const auto& choices = costs.model().blocks()[block].choices;
    costs.passes().choose(block, 0);
    const double first = costs.operations_of_block(block) / tokens;
    if (choices.empty()) measure.shared += first;
    // What candidates of several parts take adds up: the first part's, and what others take more than their
    // first.
    for (int part = 0; part < static_cast<int>(choices.size()); ++part)
      for (int number = 0; number < static_cast<int>(choices[part].units.size()); ++number) {
        costs.passes().choose(block, 0);
        costs.passes().choose_part(block, part, number);
        measure.candidates[choices[part].place][number] =
            costs.operations_of_block(block) / tokens - (part > 0 ? first : 0);
      }
  }
}

/// One sample passes through the whole network on one device.
void NetworkMeasures::add_latencies(Config config) {
  config.reproducible = {1, 1};
  config.train.batch = config.train.micro_batch = 1;
  CostModel costs(config, make_layout(config, {}));
  const Outline outline = costs.outline();
  Measure& measure = at(Objective::latency);
  for (int block = 0; block < outline.all_blocks(); ++block) {
    if (outline.parts_of[block].empty()) measure.shared += seconds_of(outline.cost(block));
    for (const BlockPart& part : outline.parts_of[block])
      for (int number = 0; number < part.count; ++number)
        measure.candidates[part.place][number] += seconds_of(outline.cost(block, part.first + number));
  }
}

}  // namespace mindpipe
