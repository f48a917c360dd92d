#pragma once
#include <string>
#include <vector>

#include "config/config.h"
#include "config/document.h"

namespace mindpipe {

/// The space that a text describes as a file would: "{name: x, decoder: {blocks: 2, candidates: [glu]}}".
inline Space space_from(const std::string& text) {
  return read_space(parse_document(text, "a space", false), "model.space");
}

/// Turns a configuration into one of a network of a space.
inline void choose(Config& config, const std::string& space, const std::vector<int>& choice) {
  config.model.kind = ModelKind::subnet;
  config.model.subnet.space = space_from(space);
  config.model.subnet.choice = choice;
}

/// A language model's, for tests of what all kinds of models have: no setting but these is its own.
inline void choose_a_plain_one(Config& config) {
  choose(config, "{name: plain, decoder: {blocks: 2, candidates: [attention-4, mlp-4]}}", {0, 1});
}

}  // namespace mindpipe
