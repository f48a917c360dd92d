#include "models/model.h"

#include <algorithm>
#include <set>

#include "config/config.h"
#include "layers/recompute.h"
#include "models/make.h"

namespace mindpipe {

Unit& Model::add_unit(const std::string& name) {
  units_.push_back(std::make_unique<Unit>(name));
  return *units_.back();
}

void Model::add_block(const std::string& name, std::unique_ptr<Layer> layer, const std::vector<Unit*>& units,
                      int use) {
  Block block{name, std::move(layer), {}, use, stream_};
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

void Model::add_choice(const std::string& name, std::unique_ptr<Layer> layer,
                       const std::vector<std::vector<Unit*>>& units, int place) {
  std::vector<Unit*> with_parameters;
  for (const auto& candidates : units)
    for (Unit* unit : candidates)
      if (unit != nullptr &&
          std::find(with_parameters.begin(), with_parameters.end(), unit) == with_parameters.end())
        with_parameters.push_back(unit);
  add_block(name, std::move(layer), with_parameters);
  Block& block = blocks_.back();
  const auto number_of = [&](const Unit* unit) {
    return unit == nullptr ? -1 : *std::find_if(block.units.begin(), block.units.end(), [&](int i) {
      return units_[i].get() == unit;
    });
  };
  for (const auto& candidates : units) {
    Block::Choice& choice = block.choices.emplace_back();
    choice.place = place++;
    for (const Unit* unit : candidates) choice.units.push_back(number_of(unit));
  }
}

bool Model::has_choices() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.is_choice(); });
}

bool Model::is_shared(int unit) const {
  return has_choices() && std::none_of(blocks_of_[unit].begin(), blocks_of_[unit].end(),
                                       [&](int block) { return blocks_[block].is_choice(); });
}

void Model::carry_memory(std::size_t first, std::size_t last, const Shape& rows_and_width) {
  for (std::size_t i = first; i <= last; ++i) blocks_[i].memory = rows_and_width;
}

std::vector<Field> Model::fields_of(const std::vector<std::pair<int, int>>& ranges) const {
  std::set<std::string_view> read;
  for (const auto& [first, last] : ranges)
    for (int block = first; block < last; ++block)
      for (const std::string_view name : blocks_[block].layer->reads()) read.insert(name);
  std::vector<Field> found;
  for (const Field& field : fields_)
    if (read.erase(field.name) > 0) found.push_back(field);
  MP_CHECK(read.empty(), "a block reads {}, which is no field of the model's samples", *read.begin());
  return found;
}

std::int64_t Model::targets_per_sample() const {
  for (const Field& field : fields_)
    if (field.name == field::targets) return field.shape.count();
  fail(Exit::internal, "a model without targets");
}

std::size_t Model::cache_bytes(std::int64_t samples) const {
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.layer->cache_bytes(samples);
  return bytes;
}

std::int64_t Model::parameters() const {
  std::int64_t n = 0;
  for (const auto& unit : units_) n += unit->parameters();
  return n;
}

Model::ExportName Model::export_name(const std::string& unit, const std::string& part) const {
  return names_ ? names_(unit, part) : ExportName{unit + "." + part};
}

namespace {

/// Refuses numbers of blocks that the model has not, or for which nothing can be done.
void require_blocks(const Model& model, const ChosenBlocks& asked, const char* key, const char* fault) {
  const int blocks = static_cast<int>(model.blocks().size());
  for (const int number : asked.numbers) {
    MP_REQUIRE(number < blocks, Exit::bad_configuration,
               "{} names block {}, and the model's blocks are 0 to {}", key, number, blocks - 1);
    const Model::Block& block = model.blocks()[number];
    MP_REQUIRE(block.layer->can_be_recomputed(), Exit::bad_configuration,
               "{} names block {}, which is {}: it has nothing that {}", key, number, block.name, fault);
  }
}

/// Notes which blocks are swapped, of those that the configuration names.
void swap_blocks(Model& model, const ChosenBlocks& asked) {
  require_blocks(model, asked, "train.swap", "could wait on the host");
  for (int number = 0; number < static_cast<int>(model.blocks().size()); ++number) {
    Model::Block& block = model.blocks()[number];
    block.is_swapped = asked.has(number) && block.layer->can_be_recomputed();
  }
}

/// Lets the blocks be recomputed that the configuration names.
void recompute_blocks(Model& model, const ChosenBlocks& asked) {
  require_blocks(model, asked, "train.recompute", "a second forward could make again");
  for (int number = 0; number < static_cast<int>(model.blocks().size()); ++number) {
    std::unique_ptr<Layer>& layer = model.blocks()[number].layer;
    if (asked.has(number) && !model.blocks()[number].is_swapped) layer = recomputed(std::move(layer));
  }
}

}  // namespace

void require_divisible(std::int64_t value, int shards, const std::string& key) {
  if (value % shards == 0) return;
  const std::int64_t below = value / shards * shards, above = below + shards;
  fail(Exit::bad_configuration,
       "{} is {}, which {} logical tensor shards (reproducible.tensor) do not divide; the nearest that fit "
       "are {}{}{}",
       key, value, shards, below > 0 ? std::to_string(below) : "", below > 0 ? " and " : "", above);
}

std::unique_ptr<Model> make_model(const Config& config, const LayerContext& context) {
  std::unique_ptr<Model> model;
  switch (config.model.kind) {
#define MINDPIPE_MAKE_MODEL(kind, ...)                                         \
  case ModelKind::kind:                                                        \
    model = kind::make(config.model.kind, config.data, config.train, context); \
    break;
    MINDPIPE_MODELS(MINDPIPE_MAKE_MODEL)
#undef MINDPIPE_MAKE_MODEL
  }
  swap_blocks(*model, config.train.swap);
  recompute_blocks(*model, config.train.recompute);
  for (const Model::Block& block : model->blocks())
    for (const Shape& shape : {block.behind, block.memory})
      MP_CHECK(shape.rank == 0 || shape[0] % context.tensor.logical() == 0,
               "{} rows leave or enter {}, which {} logical tensor shards do not divide", shape[0],
               block.name, context.tensor.logical());
  return model;
}

}  // namespace mindpipe
