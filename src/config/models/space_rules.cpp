#include <algorithm>
#include <limits>

#include "config/config.h"
#include "config/models/blocks.h"
#include "config/models/cells.h"
#include "config/models/picture_space.h"
#include "config/models/space.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {
namespace {

/// The words nearest to a candidate's that differ in one number, which fits: "attention-4 and attention-8".
template <class Fits>
std::string nearest_that_fit(Candidate candidate, std::size_t which, int most, const Fits& fits) {
  const int number = candidate.numbers[which];
  std::string words;
  const auto add = [&](int other) {
    candidate.numbers[which] = other;
    words += (words.empty() ? "" : " and ") + candidate.word();
  };
  int below = std::min(number - 1, most), above = number + 1;
  while (below > 0 && !fits(below)) --below;
  while (above <= most && !fits(above)) ++above;
  if (below > 0) add(below);
  if (above <= most) add(above);
  return words.empty() ? "no other number fits" : "the nearest that fit are " + words;
}

std::string misfit_of_heads(const Candidate& candidate, int width, int shards) {
  const auto fits = [&](int heads) { return width % heads == 0 && heads % shards == 0; };
  if (fits(candidate.heads())) return "";
  const std::string nearest = nearest_that_fit(candidate, 0, width, fits);
  if (width % candidate.heads() != 0)
    return fmt::format("{}, whose heads do not divide model.width {} ({})", candidate.word(), width, nearest);
  return fmt::format("{}, whose heads {} logical tensor shards (reproducible.tensor) do not divide ({})",
                     candidate.word(), shards, nearest);
}

std::string too_wide(const Candidate& candidate, int width, int shards) {
  const std::int64_t inner = std::int64_t{candidate.times()} * width;
  if (inner <= most_mlp_width) return "";
  const auto fits = [&](int times) {
    return std::int64_t{times} * width <= most_mlp_width && std::int64_t{times} * width % shards == 0;
  };
  return fmt::format("{}, whose inner width {} is beyond {}, the widest of all ({})", candidate.word(), inner,
                     most_mlp_width, nearest_that_fit(candidate, 0, candidate.times(), fits));
}

}  // namespace

std::string misfit_of(const Candidate& candidate, int width, int shards) {
  shards = std::max(1, shards);
  switch (candidate.kind) {
    case CandidateKind::attention:
    case CandidateKind::cross:
      return misfit_of_heads(candidate, width, shards);
    case CandidateKind::light:
      if (width % candidate.shared() == 0) return "";
      return fmt::format("{}, whose weights are for {} channels each, of model.width {} ({})",
                         candidate.word(), candidate.shared(), width,
                         nearest_that_fit(candidate, 1, width, [&](int n) { return width % n == 0; }));
    case CandidateKind::normed_mlp:  // undivided
      return too_wide(candidate, width, 1);
    case CandidateKind::none:
    case CandidateKind::add:
    case CandidateKind::multiply:
    case CandidateKind::concat:
      break;
    case CandidateKind::mlp: {
      if (const std::string wide = too_wide(candidate, width, shards); !wide.empty()) return wide;
      const auto fits = [&](int times) { return std::int64_t{times} * width % shards == 0; };
      if (fits(candidate.times())) return "";
      return fmt::format(
          "{}, whose inner width {} {} logical tensor shards (reproducible.tensor) do not divide ({})",
          candidate.word(), std::int64_t{candidate.times()} * width, shards,
          nearest_that_fit(candidate, 0, candidate.times() + shards, fits));
    }
    case CandidateKind::convolution:
    case CandidateKind::separable:
    case CandidateKind::dilated:
    case CandidateKind::maximum:
    case CandidateKind::average:
    case CandidateKind::gated:
    case CandidateKind::identity:
      break;
  }
  return "";
}

std::int64_t networks_of(const Space& space) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t networks = 1;
  for (int block = 0; block < space.blocks(); ++block) {
    const std::int64_t count = std::ssize(space.candidates(block));
    networks = networks > most / count ? most : networks * count;
  }
  return networks;
}

std::string misfit_of(const Space& space, const std::vector<int>* choice, int width, int shards) {
  if (space.has_cells()) return misfit_of_cells(space, choice, width, shards);
  for (int block = 0; block < space.blocks(); ++block)
    for (int number = 0; number < static_cast<int>(space.candidates(block).size()); ++number) {
      if (choice != nullptr && (*choice)[block] != number) continue;
      const std::string misfit = misfit_of(space.candidates(block)[number], width, shards);
      if (!misfit.empty()) return fmt::format("{} {}", space.name_of(block), misfit);
    }
  return "";
}

namespace {

std::vector<Setting> settings_of_texts(SpaceSettings& m, Config& config) {
  constexpr Range automatic{1, 1 << 24, false, false, "auto"}, share{0, 1, false, true};
  std::vector<Setting> all;
  all.insert(all.end(),
             {{"model.width", &m.width, "numbers per token between blocks", Range{1, 1 << 20}},
              {"model.dropout", &m.dropout,
               "probability that an element of embeddings or of a block's layer is dropped", share},
              {"model.attention_dropout", &m.attention_dropout,
               "probability that an attention weight is dropped", share},
              {"model.context", &m.context, "the longest sequence", Range{1, 1 << 24}},
              {"model.vocabulary", &m.vocabulary, "distinct tokens; auto: the tokenizer's",
               Range{1, 1 << 24, false, false, "auto"}},
              {"model.positions", &m.positions,
               "how positions enter: a learned table; sines and cosines; or closed_sinusoids, "
               "whose slowest turns by 1/10000 exactly"},
              {"model.tied", &m.tied, "embeddings and head share their table"},
              {"data.sequence", &config.data.sequence,
               "tokens per sample of a space without an encoder, at most model.context; auto: model.context",
               automatic},
              {"data.source_sequence", &config.data.source_sequence,
               "tokens of a sample's source, where the space has an encoder, at most model.context; auto: "
               "model.context",
               automatic},
              {"data.target_sequence", &config.data.target_sequence,
               "tokens of a sample's target, where the space has an encoder, at most model.context; auto: "
               "model.context",
               automatic}});
  add_special_tokens(all, config.data);
  return all;
}

}  // namespace

std::vector<Setting> space_settings(SpaceSettings& m, Config& config) {
  std::vector<Setting> all{
      Setting("model.space", &m.space, "the layers that each block may be").required().deciding(),
      {"model.norm_epsilon", &m.norm_epsilon, "added to the variance", Range{0, 1, true}}};
  const auto add = [&](const std::vector<Setting>& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (!m.space.is_of_pictures()) add(settings_of_texts(m, config));
  if (m.space.is_of_pictures() || m.space.blocks() == 0) add(picture_space_settings(m, config));
  return all;
}

void fill_in_space(const SpaceSettings& m, Config& config) {
  const auto fill = [&](int& sequence) {
    if (sequence == 0) sequence = m.context;
  };
  if (m.space.is_of_pictures()) return;
  if (m.space.has_encoder()) {
    fill(config.data.source_sequence);
    fill(config.data.target_sequence);
  } else if (m.space.blocks() > 0) {
    fill(config.data.sequence);
  }
}

void check_space(const SpaceSettings& m, const Config& config, const Complaints& complain) {
  const DataConfig& data = config.data;
  complain.require(m.space.blocks() > 0, "model.space", "is missing (allowed: {})", allowed_spaces());
  if (m.space.is_of_pictures()) return check_picture_space(m, config, complain);
  complain.require(m.positions == Places::learned || m.width % 2 == 0, "model.width",
                   "is {} (sines and cosines take half of it each)", m.width);
  complain.require(m.positions != Places::closed_sinusoids || m.width > 2, "model.width",
                   "is {} (closed sinusoids have a first and a last frequency)", m.width);
  const auto is_auto = [&](int sequence, const char* key, const char* why) {
    complain.require(sequence == 0, key, "is {}, but model.space, {}, {}; leave it out", sequence,
                     m.space.name, why);
  };
  if (m.space.has_encoder()) {
    is_auto(data.sequence, "data.sequence",
            "has an encoder (its samples have data.source_sequence and data.target_sequence)");
    check_length(m, data.source_sequence, "data.source_sequence", complain);
    check_length(m, data.target_sequence, "data.target_sequence", complain);
  } else {
    const char* why = "has no encoder (its samples have data.sequence)";
    is_auto(data.source_sequence, "data.source_sequence", why);
    is_auto(data.target_sequence, "data.target_sequence", why);
    check_length(m, data.sequence, "data.sequence", complain);
  }
}

std::vector<Extent> rows_of_space(const SpaceSettings& m, const Config& config) {
  if (m.space.is_of_pictures()) return pixels_of_space(m);
  if (!m.space.has_encoder()) return {{"data.sequence", config.data.sequence}};
  return {{"data.source_sequence", config.data.source_sequence},
          {"data.target_sequence", config.data.target_sequence}};
}

}  // namespace mindpipe
