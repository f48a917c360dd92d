#include "models/candidates.h"
#include "models/space_ends.h"

namespace mindpipe::subnet {
namespace {

/// Operations for each parameter of a block and token of its side, 6 of them, for the softmax's table, and
/// those of attention, per token that is counted. The text stands for A attentions and sides of equal length.
void estimate(Model& model, const Config& config) {
  const Settings& m = config.model.subnet;
  const bool pairs = m.space.has_encoder();
  const double width = m.width, source = config.data.source_sequence,
               target = pairs ? config.data.target_sequence : config.data.sequence;
  double operations = target * 6 * width * m.vocabulary;
  for (int block = 0; block < m.space.blocks(); ++block) {
    const Candidate& candidate = m.space.candidates(block)[m.choice[block]];
    const double rows = m.space.encodes(block) ? source : target;
    double weights = 0;
    for (const int unit : model.blocks()[SpaceEnds::place_of(m.space, block)].units)
      weights += static_cast<double>(model.units()[unit]->parameters());
    operations += rows * 6 * weights;
    if (candidate.kind == CandidateKind::attention)
      operations += (m.space.encodes(block) ? 12 : 6) * width * rows * rows;
    if (candidate.kind == CandidateKind::cross)  // whose keys and values are the source's
      operations += 6 * weights / 2 * (source - rows) + 12 * width * rows * source;
  }
  model.estimate({pairs ? "6N + 12Ahs" : "6N + 6Ahq", operations / target});
}

}  // namespace

/// Makes one network of a space: each block is the candidate that is chosen, under its name in the space.
std::unique_ptr<Model> make(const Config& config, const LayerContext& context) {
  const Settings& m = config.model.subnet;
  for (int block = 0; block < m.space.blocks(); ++block) {
    const std::string misfit =
        misfit_of(m.space.candidates(block)[m.choice[block]], m.width, context.tensor.logical());
    MP_REQUIRE(misfit.empty(), Exit::bad_configuration, "model.choice makes block {} {}", block, misfit);
  }
  auto model = std::make_unique<Model>();
  const Candidates candidates(config, m, context);
  SpaceEnds ends(*model, config, m, context);
  ends.add_beginning();
  int last_reader = 0;
  for (int block = 0; block < m.space.blocks(); ++block) {
    if (block == static_cast<int>(m.space.encoder.size())) ends.add_bridge();
    candidates.append(*model, block, m.choice[block]);
    if (m.space.candidates(block)[m.choice[block]].kind == CandidateKind::cross)
      last_reader = SpaceEnds::place_of(m.space, block);
  }
  ends.add_end(last_reader);
  estimate(*model, config);
  return model;
}

}  // namespace mindpipe::subnet
