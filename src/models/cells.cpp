#include "models/cells.h"

#include "config/sections/data.h"
#include "supernet/subnet.h"

namespace mindpipe {
namespace {

LayerContext with_whole_rows(LayerContext context) {
  context.sequence_parallel = false;
  return context;
}

Activation activation_of(CellActivation activation) {
  switch (activation) {
    case CellActivation::none:
      break;
    case CellActivation::relu:
      return Activation::relu;
    case CellActivation::gelu:
      return Activation::gelu;
    case CellActivation::silu:
      return Activation::silu;
  }
  return Activation::none;
}

/// Whether a layer has its activation inside, or ends in it.
bool has_activation(const Candidate& candidate) {
  switch (candidate.kind) {
    case CandidateKind::convolution:
    case CandidateKind::separable:
    case CandidateKind::light:
    case CandidateKind::mlp:
    case CandidateKind::normed_mlp:
      return true;
    default:
      return false;
  }
}

Combiner combiner_of(const Candidate& candidate) {
  if (candidate.kind == CandidateKind::multiply) return Combiner::multiply;
  return candidate.kind == CandidateKind::concat ? Combiner::concat : Combiner::add;
}

}  // namespace

Cells::Cells(Model& model, const DataConfig& data, const SpaceSettings& settings, const LayerContext& context,
             const std::vector<int>* choice)
    : model_(model),
      data_(data),
      settings_(settings),
      context_(context),
      whole_(with_whole_rows(context)),
      choice_(choice),
      shapes_(shapes_of_cells(settings.space, choice, settings.width)) {}

std::vector<int> Cells::numbers(int block) const {
  if (choice_ != nullptr) return {(*choice_)[block]};
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(settings_.space.candidates(block).size()); ++i) all.push_back(i);
  return all;
}

std::string Cells::name_of(int layer) const {
  const Space& space = settings_.space;
  const int block = layer * Space::places_of_cell_block;
  const bool encodes = space.encodes(block);
  const int of_side = encodes ? layer
                              : layer - static_cast<int>(space.encoder.size()) / Space::places_of_cell_block,
            blocks = encodes ? space.encoder_cell.blocks : space.decoder_cell.blocks;
  return fmt::format("{}.{}.{}", encodes ? "encoder" : "decoder", of_side / blocks, of_side % blocks);
}

/// A row of the model's width may be normed by any rank that has it; others are normed where all rows are.
Norm Cells::norm(Unit& unit, std::int64_t width) const {
  return {context_, unit,
          "norm",   NormKind::layer,
          width,    settings_.norm_epsilon,
          true,     width == settings_.width ? Form::rows : Form::whole};
}

CellBranchSpec Cells::branch(int block, int number, const CellShape& shape, const FindUnit& unit) const {
  const std::vector<Candidate>& candidates = settings_.space.candidates(block);
  const Candidate& candidate = candidates[number];
  CellBranchSpec made;
  if (candidate.kind == CandidateKind::none) return made;
  const bool is_left = block % Space::places_of_cell_block == 0;
  const std::int64_t reads = candidate.branch.input == 2 ? shape.older : shape.newest;
  const Activation activation = activation_of(candidate.branch.activation);
  made.input = candidate.branch.input;
  made.width = is_left ? shape.left : shape.right;
  made.whole = reads != settings_.width;
  made.dropout = settings_.dropout;
  made.purpose = purpose_of(candidate_name(block, number) + ".dropout");
  if (!has_activation(candidate)) made.activation = activation;
  const int owner = owner_of_unit(candidates, number);
  if (owner < 0) return made;
  Unit& own = unit(candidate_name(block, owner));
  if (candidate.branch.norm == CellNorm::own) made.norm.emplace(norm(own, reads));
  if (candidate.kind == CandidateKind::identity) return made;
  const Candidates layers(settings_, made.whole ? whole_ : context_);
  made.layer = layers.branch(candidate,
                             {.encodes = settings_.space.encodes(block),
                              .inputs = reads,
                              .outputs = made.width,
                              .activation = activation,
                              .inner_dropout = settings_.dropout},
                             own);
  if (Candidates::leaves_bias(candidate)) made.bias = residual_bias(own, "mlp.output", made.width);
  return made;
}

CellBlockSpec Cells::make(int layer, const FindUnit& unit) const {
  const CellShape& shape = shapes_[layer];
  const int place = layer * Space::places_of_cell_block;
  CellBlockSpec spec{.place = choice_ != nullptr ? -1 : place,
                     .newest = shape.newest,
                     .older = shape.older,
                     .width = shape.width,
                     .residual = shape.residual,
                     .keeps = shape.keeps};
  const Candidate& first = settings_.space.candidates(place)[numbers(place).front()];
  if (first.branch.norm == CellNorm::shared) {
    const std::int64_t reads = first.branch.input == 2 ? shape.older : shape.newest;
    spec.shared.emplace(norm(unit(candidate_name(place, numbers(place).front())), reads));
    spec.shared_whole = reads != settings_.width;
  }
  for (const int number : numbers(place)) spec.left.push_back(branch(place, number, shape, unit));
  for (const int number : numbers(place + 1)) spec.right.push_back(branch(place + 1, number, shape, unit));
  for (const int number : numbers(place + 2))
    spec.combine.push_back(combiner_of(settings_.space.candidates(place + 2)[number]));
  return spec;
}

void Cells::append(int layer) {
  const int place = layer * Space::places_of_cell_block;
  std::vector<Unit*> made;
  const FindUnit find = [&](const std::string& name) -> Unit& {
    for (Unit* unit : made)
      if (unit->name() == name) return *unit;
    return *made.emplace_back(&model_.add_unit(name));
  };
  CellBlockSpec spec = make(layer, find);
  const bool encodes = settings_.space.encodes(place);
  const std::int64_t rows = !settings_.space.has_encoder() ? data_.sequence
                            : encodes                      ? data_.source_sequence
                                                           : data_.target_sequence;
  model_.stream({rows, shapes_[layer].leaving()});
  auto block = std::make_unique<CellBlock>(context_, std::move(spec));
  if (choice_ != nullptr) return model_.add_block(name_of(layer), std::move(block), made);
  std::vector<std::vector<Unit*>> units(Space::places_of_cell_block);
  for (int part = 0; part < Space::places_of_cell_block; ++part) {
    const std::vector<Candidate>& candidates = settings_.space.candidates(place + part);
    for (const int number : numbers(place + part)) {
      const int owner = owner_of_unit(candidates, number);
      units[part].push_back(owner < 0 ? nullptr : &find(candidate_name(place + part, owner)));
    }
  }
  model_.add_choice(name_of(layer), std::move(block), units, place);
}

}  // namespace mindpipe
