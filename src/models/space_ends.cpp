#include "models/space_ends.h"

#include <algorithm>
#include <cmath>

#include "config/sections/data.h"
#include "config/sections/train.h"
#include "layers/bridge.h"
#include "layers/classifier.h"
#include "models/pairs.h"

namespace mindpipe {

Unit& SpaceEnds::table(const char* name, int use) {
  if (!settings_.tied) return model_.add_unit(name);
  if (use == 0) shared_ = &model_.add_unit("embedding");
  return *shared_;
}

double SpaceEnds::deviation() const { return 1 / std::sqrt(static_cast<double>(settings_.width)); }

EmbeddingSpec SpaceEnds::embedding(std::string_view field, int use) const {
  EmbeddingSpec spec{.vocabulary = settings_.vocabulary,
                     .width = settings_.width,
                     .dropout = settings_.dropout,
                     .deviation = deviation(),
                     .field = field,
                     .uses = uses(),
                     .use = settings_.tied ? use : 0,
                     .factor = 1 / deviation()};
  if (settings_.positions == Places::learned) spec.positions = settings_.context;
  else
    spec.sinusoids = settings_.positions == Places::sinusoids ? Sinusoids::below_base : Sinusoids::up_to_base;
  if (settings_.space.has_encoder()) spec.padding = data_.special.padding;
  return spec;
}

void SpaceEnds::add_beginning() {
  const bool pairs = settings_.space.has_encoder();
  const std::int64_t rows = pairs ? data_.source_sequence : data_.sequence;
  if (pairs) {
    see_pairs(model_, data_, settings_.vocabulary);
  } else {
    model_.add_field({field::tokens, DType::i32, {rows}, settings_.vocabulary});
    model_.add_field({field::targets, DType::i32, {rows}, settings_.vocabulary});
    model_.count_in({"token", rows});
  }
  model_.stream({rows, settings_.width});
  const std::string name = pairs ? "encoder.embedding" : "embedding";
  Unit& tokens = table(pairs ? "encoder.table" : "embedding", 0);
  Unit& positions = model_.add_unit(pairs ? "encoder.positions" : "positions");
  const EmbeddingSpec spec = embedding(pairs ? field::source : field::tokens, 0);
  model_.add_block(name, std::make_unique<Embedding>(context_, tokens, positions, name, spec),
                   {&tokens, &positions});
}

void SpaceEnds::add_bridge() {
  if (!settings_.space.has_encoder()) return;
  model_.stream({data_.target_sequence, settings_.width});
  Unit& tokens = table("decoder.table", 1);
  Unit& unit = model_.add_unit("bridge");
  auto target = std::make_unique<Embedding>(context_, tokens, unit, "bridge", embedding(field::tokens, 1));
  const Norm norm(context_, unit, "norm", NormKind::layer, settings_.width, settings_.norm_epsilon, true);
  model_.add_block("bridge", std::make_unique<Bridge>(context_, norm, std::move(target)), {&tokens, &unit},
                   settings_.tied ? 1 : 0);
}

void SpaceEnds::add_end(int last_reader) {
  const Space& space = settings_.space;
  if (space.has_encoder()) {
    const int first = place_of(space, static_cast<int>(space.encoder.size()) / space.places_of_layer());
    model_.carry_memory(static_cast<std::size_t>(first),
                        static_cast<std::size_t>(std::max(first, last_reader)),
                        {data_.source_sequence, settings_.width});
  }
  const int use = settings_.tied ? uses() - 1 : 0;
  const ClassifierSpec spec{.vocabulary = settings_.vocabulary,
                            .width = settings_.width,
                            .deviation = deviation(),
                            .uses = uses(),
                            .use = use,
                            .table = settings_.tied ? "embedding" : "classifier",
                            .epsilon = settings_.norm_epsilon,
                            .label_smoothing = train_.label_smoothing};
  Unit& last = model_.add_unit("head");
  Unit& tokens = settings_.tied ? *shared_ : last;
  std::vector<Unit*> units{&last};
  if (settings_.tied) units.push_back(shared_);
  model_.add_block("head", std::make_unique<Classifier>(context_, tokens, last, spec), units, use);
}

}  // namespace mindpipe
