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
/// Without a choice, all of them: a supernet.
std::unique_ptr<Model> make(const Config& config, const LayerContext& context) {
  const Settings& m = config.model.subnet;
  const auto may_be = [&](int block) {
    const std::vector<Candidate>& all = m.space.candidates(block);
    return m.choice.empty() ? all : std::vector<Candidate>{all[m.choice[block]]};
  };
  for (int block = 0; block < m.space.blocks(); ++block)
    for (const Candidate& candidate : may_be(block)) {
      const std::string misfit = misfit_of(candidate, m.width, context.tensor.logical());
      MP_REQUIRE(misfit.empty(), Exit::bad_configuration, "model.choice makes block {} {}", block, misfit);
    }
  auto model = std::make_unique<Model>();
  const Candidates candidates(config, m, context);
  SpaceEnds ends(*model, config, m, context);
  ends.add_beginning();
  int last_reader = 0;
  for (int block = 0; block < m.space.blocks(); ++block) {
    if (block == static_cast<int>(m.space.encoder.size())) ends.add_bridge();
    if (m.choice.empty()) candidates.append_choice(*model, block);
    else candidates.append(*model, block, m.choice[block]);
    for (const Candidate& candidate : may_be(block))
      if (candidate.kind == CandidateKind::cross) last_reader = SpaceEnds::place_of(m.space, block);
  }
  ends.add_end(last_reader);
  if (!m.choice.empty()) estimate(*model, config);
  return model;
}

}  // namespace mindpipe::subnet
