#pragma once
#include <cstdint>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// Appends a block of a supernet: what each candidate of its parts costs, and its unit, -1 where it has none.
void add_choice(Outline& outline, const std::vector<BlockCost>& costs, const std::vector<int>& unit_of,
                const std::vector<BlockPart>& parts);

/// The parts of a block, whose candidates stand one after the other; a block that all share has one.
std::vector<BlockPart> choice_parts(const Outline& outline, int block);

/// Calls see(candidate) for each candidate that a subnet takes of a block: their costs add up.
template <class See>
void for_candidates(const Outline& outline, const std::vector<std::uint8_t>& choice, int block,
                    const See& see) {
  if (outline.parts_of.empty()) return see(static_cast<int>(choice[block]));
  if (outline.parts_of[block].empty()) return see(0);
  for (const BlockPart& part : outline.parts_of[block]) see(part.first + choice[part.place]);
}

}  // namespace mindpipe
