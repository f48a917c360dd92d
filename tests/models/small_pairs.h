#pragma once
#include "models/small.h"

namespace mindpipe::testing {

/// A transformer whose source has more rows than its target: five of the first sample's count, and three of
/// the second's.
inline Config with_longer_sources() {
  Config config = small(ModelKind::transformer);
  config.model.transformer.context = 12;
  config.data.target_sequence = 8;
  config.data.source_sequence = 12;
  return config;
}

/// Whether tokens behind the lengths of sources change a loss.
inline bool reads_padding_of_sources(Subject& subject) {
  const Tensor source = subject.field(field::source), lengths = subject.field(field::source_lengths);
  auto* tokens = source.as<std::int32_t>();
  const double loss = subject.loss();
  for (std::int64_t sample = 0; sample < source.shape[0]; ++sample)
    for (std::int64_t i = lengths.as<std::int32_t>()[sample]; i < source.shape[1]; ++i) {
      std::int32_t& token = tokens[sample * source.shape[1] + i];
      token = (token + 7) % 100;
    }
  return subject.loss() != loss;
}

/// The rows of a model's losses that a token in row `row` of the first sample changes.
inline std::set<std::size_t> changed_by_a_token(Subject& subject, std::int64_t row) {
  subject.loss();
  const std::vector<double> before = subject.losses();
  std::int32_t& token = subject.field(field::tokens).as<std::int32_t>()[row];
  const std::int32_t was = token;
  token = (token + 7) % 100;
  subject.loss();
  token = was;
  std::set<std::size_t> changed;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != subject.losses()[i]) changed.insert(i);
  return changed;
}

}  // namespace mindpipe::testing
