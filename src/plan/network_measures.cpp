#include "plan/network_measures.h"

#include "plan/cost_model.h"

namespace mindpipe {

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
  const auto bytes_each = static_cast<double>(bytes_of(compute_dtype(config)));
  const auto add = [&](int unit, const auto& to) {
    const auto parameters = static_cast<double>(model.units()[unit]->parameters());
    to(at(Objective::parameters)) += parameters;
    to(at(Objective::bytes)) += parameters * bytes_each;
  };
  for (int unit = 0; unit < static_cast<int>(model.units().size()); ++unit)
    if (model.is_shared(unit)) add(unit, [](Measure& measure) -> double& { return measure.shared; });
  for (const Model::Block& block : model.blocks())
    for (std::size_t number = 0; number < block.candidates.size(); ++number)
      if (block.candidates[number] >= 0)
        add(block.candidates[number],
            [&](Measure& measure) -> double& { return measure.candidates[block.place][number]; });
}

void NetworkMeasures::add_operations(const Config& config) {
  CostModel costs(config, make_layout(config, {}));
  const double tokens = static_cast<double>(config.train.micro_batch * costs.model().counted().of_sample);
  Measure& measure = at(Objective::operations);
  for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block) {
    const Model::Block& of_model = costs.model().blocks()[block];
    if (!of_model.is_choice()) measure.shared += costs.operations_of_block(block) / tokens;
    for (int number = 0; number < static_cast<int>(of_model.candidates.size()); ++number) {
      costs.choose(block, number);
      measure.candidates[of_model.place][number] = costs.operations_of_block(block) / tokens;
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
    const int place = outline.choice_of[block];
    for (std::size_t number = 0; number < outline.blocks[block].size(); ++number) {
      const double seconds =
          1e-9 * static_cast<double>(outline.cost(block, static_cast<int>(number)).forward);
      (place < 0 ? measure.shared : measure.candidates[place][number]) += seconds;
    }
  }
}

}  // namespace mindpipe
