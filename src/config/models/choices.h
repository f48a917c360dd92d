#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/models/space.h"

namespace mindpipe {

/// The blocks of a network that attend to the encoder. `choice`: the number of each block's candidate.
std::vector<int> blocks_that_see_the_source(const Space& space, const std::vector<std::uint8_t>& choice);

/// A sentence about a network that has an encoder and never attends to it, with the blocks that would; empty
/// where there is nothing to say.
std::string blindness_of(const Space& space, const std::vector<std::uint8_t>& choice);

/// The first block in which two spaces differ, as a sentence: "block 3 is one of 4 candidates and not of 6".
/// Empty where they have the same networks, whatever they are called.
std::string difference(const Space& space, const Space& wanted);

}  // namespace mindpipe
