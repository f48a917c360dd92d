#include "config/models/choices.h"

#include <algorithm>

#include <fmt/format.h>
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t most_named = 6;  ///< blocks in a sentence

/// A candidate that attends to the encoder, among those that a block may be; -1: none does.
int seeing_candidate(const std::vector<Candidate>& candidates) {
  for (std::size_t number = 0; number < candidates.size(); ++number)
    if (candidates[number].kind == CandidateKind::cross) return static_cast<int>(number);
  return -1;
}

std::string side_of(const Space& space, int block) { return space.encodes(block) ? "encoder" : "decoder"; }

}  // namespace

std::vector<int> blocks_that_see_the_source(const Space& space, const std::vector<std::uint8_t>& choice) {
  std::vector<int> blocks;
  for (int block = 0; block < space.blocks(); ++block)
    if (space.candidates(block).at(choice.at(block)).kind == CandidateKind::cross) blocks.push_back(block);
  return blocks;
}

std::string blindness_of(const Space& space, const std::vector<std::uint8_t>& choice) {
  if (!space.has_encoder() || !blocks_that_see_the_source(space, choice).empty()) return "";
  std::vector<std::string> would;
  std::size_t more = 0;
  for (int block = 0; block < space.blocks(); ++block) {
    const int number = seeing_candidate(space.candidates(block));
    if (number < 0) continue;
    if (would.size() == most_named) ++more;
    else
      would.push_back(
          fmt::format("block {} with {} ({})", block, number, space.candidates(block)[number].word()));
  }
  return "no block attends to the encoder, so the network never sees its source (" +
         (would.empty()
              ? "none of " + space.name + " does"
              : join(would, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "") + " would") +
         ")";
}

std::string difference(const Space& space, const Space& wanted) {
  for (int block = 0; block < std::max(space.blocks(), wanted.blocks()); ++block) {
    if (block >= space.blocks() || block >= wanted.blocks())
      return fmt::format("it has {} blocks and not {}", space.blocks(), wanted.blocks());
    if (space.encodes(block) != wanted.encodes(block))
      return fmt::format("block {} is the {}'s and not the {}'s", block, side_of(space, block),
                         side_of(wanted, block));
    const std::vector<Candidate>&here = space.candidates(block), &there = wanted.candidates(block);
    if (here.size() != there.size())
      return fmt::format("block {} is one of {} candidates and not of {}", block, here.size(), there.size());
    const auto [first, other] = std::mismatch(here.begin(), here.end(), there.begin());
    if (first != here.end())
      return fmt::format("candidate {} of block {} is {} and not {}", first - here.begin(), block,
                         first->word(), other->word());
  }
  return "";
}

}  // namespace mindpipe
