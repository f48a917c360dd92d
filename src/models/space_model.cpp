#include "models/space_model.h"

#include "config/sections/data.h"
#include "models/candidates.h"
#include "models/cells.h"
#include "models/picture_candidates.h"
#include "models/space_ends.h"
#include "supernet/subnet.h"

namespace mindpipe {
namespace {

/// The candidates that a block of the model has, by their numbers in the space.
std::vector<int> candidates_of(const Space& space, const std::vector<int>* choice, int block) {
  if (choice != nullptr) return {(*choice)[block]};
  std::vector<int> all;
  for (int number = 0; number < static_cast<int>(space.candidates(block).size()); ++number)
    all.push_back(number);
  return all;
}

/// Parameters of candidate `number` of a block, which has its unit, if any, by the name of the first that
/// does.
double parameters_of_candidate(const Model& model, const Model::Block& of_model, const Space& space,
                               int block, int number) {
  const int owner = owner_of_unit(space.candidates(block), number);
  for (const int unit : of_model.units)
    if (owner >= 0 && model.units()[unit]->name() == candidate_name(block, owner))
      return static_cast<double>(model.units()[unit]->parameters());
  return 0;
}

/// Operations for each parameter of a block and token of its side, 6 of them, for the softmax's table, and
/// those of attention, per token that is counted; of a supernet, of its networks' mean. The text stands for A
/// attentions and sides of equal length.
void estimate(Model& model, const DataConfig& data, const SpaceSettings& m, const std::vector<int>* choice) {
  const bool pairs = m.space.has_encoder();
  const double width = m.width, source = data.source_sequence,
               target = pairs ? data.target_sequence : data.sequence;
  double operations = target * 6 * width * m.vocabulary;
  for (int block = 0; block < m.space.blocks(); ++block) {
    const std::vector<int> numbers = candidates_of(m.space, choice, block);
    const double rows = m.space.encodes(block) ? source : target,
                 share = 1.0 / static_cast<double>(numbers.size());
    for (const int number : numbers) {
      const Candidate& candidate = m.space.candidates(block)[number];
      const int layer = block / m.space.places_of_layer();
      const double weights = parameters_of_candidate(
          model, model.blocks()[SpaceEnds::place_of(m.space, layer)], m.space, block, number);
      operations += share * rows * 6 * weights;
      if (candidate.kind == CandidateKind::attention)
        operations += share * (m.space.encodes(block) ? 12 : 6) * width * rows * rows;
      if (candidate.kind == CandidateKind::cross)  // whose keys and values are the source's
        operations += share * (6 * weights / 2 * (source - rows) + 12 * width * rows * source);
    }
  }
  model.estimate({pairs ? "6N + 12Ahs" : "6N + 6Ahq", operations / target});
}

}  // namespace

std::unique_ptr<Model> make_of_space(const DataConfig& data, const TrainConfig& train, const SpaceSettings& m,
                                     const LayerContext& context, const std::vector<int>* choice) {
  if (m.space.is_of_pictures()) return make_of_picture_space(train, m, context, choice);
  const std::string misfit = misfit_of(m.space, choice, m.width, context.tensor.logical());
  MP_REQUIRE(misfit.empty(), Exit::bad_configuration, "{} {}",
             choice != nullptr ? "model.choice makes" : "model.space gives", misfit);
  auto model = std::make_unique<Model>();
  const Candidates candidates(m, context);
  SpaceEnds ends(*model, data, train, m, context);
  ends.add_beginning();
  std::optional<Cells> cells;
  if (m.space.has_cells()) cells.emplace(*model, data, m, context, choice);
  int last_reader = 0;
  for (int block = 0; block < m.space.blocks(); ++block) {
    if (block == static_cast<int>(m.space.encoder.size())) ends.add_bridge();
    const int layer = block / m.space.places_of_layer();
    if (cells && block % m.space.places_of_layer() == 0) cells->append(layer);
    else if (!cells && choice != nullptr) candidates.append(*model, block, (*choice)[block]);
    else if (!cells) candidates.append_choice(*model, block);
    for (const int number : candidates_of(m.space, choice, block))
      if (m.space.candidates(block)[number].kind == CandidateKind::cross)
        last_reader = SpaceEnds::place_of(m.space, layer);
  }
  ends.add_end(last_reader);
  if (choice != nullptr && !m.space.has_encoder()) model->continue_texts({m.context, m.vocabulary});
  estimate(*model, data, m, choice);
  return model;
}

}  // namespace mindpipe
