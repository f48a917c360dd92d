#include "models/model.h"

#include <algorithm>

#include "layers/recompute.h"

namespace mindpipe {

Unit& Model::add_unit(const std::string& name) {
  units_.push_back(std::make_unique<Unit>(name));
  return *units_.back();
}

void Model::add_block(const std::string& name, std::unique_ptr<Layer> layer, const std::vector<Unit*>& units,
                      int use) {
  Block block{name, std::move(layer), {}, use};
  for (Unit* unit : units)
    for (int i = static_cast<int>(units_.size()); i-- > 0;)  // the newest, mostly
      if (units_[i].get() == unit) {
        block.units.push_back(i);
        break;
      }
  std::sort(block.units.begin(), block.units.end());
  blocks_of_.resize(units_.size());
  for (int unit : block.units) blocks_of_[unit].push_back(static_cast<int>(blocks_.size()));
  blocks_.push_back(std::move(block));
}

std::int64_t Model::parameters() const {
  std::int64_t n = 0;
  for (const auto& unit : units_) n += unit->parameters();
  return n;
}

Model::ExportName Model::export_name(const std::string& unit, const std::string& part) const {
  return {unit + "." + part, false};
}

std::unique_ptr<Layer> maybe_recomputed(const Config& config, std::unique_ptr<Layer> block) {
  if (config.train.recompute != RecomputeKind::block) return block;
  return std::make_unique<Recompute>(std::move(block));
}

void require_divisible(std::int64_t value, int shards, const std::string& key) {
  if (value % shards == 0) return;
  const std::int64_t below = value / shards * shards, above = below + shards;
  fail(Exit::bad_configuration,
       "{} is {}, which {} logical tensor shards (reproducible.tensor) do not divide; the nearest that fit "
       "are {}{}{}",
       key, value, shards, below > 0 ? std::to_string(below) : "", below > 0 ? " and " : "", above);
}

std::unique_ptr<Model> make_model(const Config& config, const LayerContext& context) {
  switch (config.model.kind) {
#define MINDPIPE_CALL_MODEL(kind, ...) \
  case ModelKind::kind:                \
    return make_##kind(config, context);
    MINDPIPE_MODELS(MINDPIPE_CALL_MODEL)
#undef MINDPIPE_CALL_MODEL
  }
  fail(Exit::internal, "no model {}", static_cast<int>(config.model.kind));
}

}  // namespace mindpipe
