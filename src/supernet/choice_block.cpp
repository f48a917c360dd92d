#include "supernet/choice_block.h"

#include <algorithm>

#include "layers/recompute.h"

namespace mindpipe {

std::vector<std::string_view> ChoiceBlock::reads() const {
  std::vector<std::string_view> fields;
  for (const auto& candidate : candidates_)
    for (const std::string_view field : candidate->reads())
      if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
  return fields;
}

std::size_t ChoiceBlock::statistics_bytes() const {
  std::size_t most = 0;
  for (const auto& candidate : candidates_) most = std::max(most, candidate->statistics_bytes());
  return most;
}

void ChoiceBlock::recompute_candidates() {
  for (auto& candidate : candidates_) candidate = recomputed(std::move(candidate));
}

Layer& ChoiceBlock::chosen(const Tape& tape) const {
  MP_CHECK(tape.batch.choice != nullptr, "block {} of a supernet without a subnet", place_);
  const std::size_t number = tape.batch.choice[place_];
  MP_CHECK(number < candidates_.size(), "candidate {} of the {} of block {}", number, candidates_.size(),
           place_);
  return *candidates_[number];
}

}  // namespace mindpipe
