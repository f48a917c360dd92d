#pragma once
#include <string>

#include "config/document.h"
#include "config/models/space.h"

namespace mindpipe {

inline constexpr int most_blocks = 4096;     ///< blocks of an encoder, a decoder, or a space of pictures
inline constexpr int most_candidates = 256;  ///< candidates of a block: a choice is a byte

/// A whole number of a document that describes a space; `or_else`: what else may stand there.
int read_number(const Node& node, const std::string& key, int least, int most,
                const std::string& or_else = "");
/// The candidate whose word stands in a document, where words of this use may.
Candidate read_candidate(const Node& node, const std::string& key, WordUse use);
/// A list of candidates, each of them `repeat` times.
std::vector<Candidate> read_candidates(const Node& node, const std::string& key, int repeat, WordUse use);

}  // namespace mindpipe
