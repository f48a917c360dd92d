#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mindpipe {

struct Candidate;
struct Space;

/// One network of a space, in the order in which they are trained: which candidate each of its blocks is.
struct Subnet {
  std::int64_t id = 0;
  std::vector<std::uint8_t> choice;
  bool operator==(const Subnet&) const = default;
};

/// A choice as files and settings write it, a number a block: "3, 0, 7".
std::string written(const std::vector<std::uint8_t>& choice);
/// The choice that a text writes, one number a block: "3, 0, 7", perhaps in brackets. `where` begins a
/// refusal.
std::vector<std::uint8_t> read_choice(const Space& space, std::string_view text, const std::string& where);

/// The name of a candidate and of its unit: "blocks.7.3".
std::string candidate_name(int block, int number);
/// Whether a candidate has a unit at all.
bool has_parameters(const Candidate& candidate);
/// The first of a block's candidates that has the same unit as candidate `number`, which names it: those of a
/// cell's branch share one if layer, width and norm are the same. -1: it has none.
int owner_of_unit(const std::vector<Candidate>& candidates, int number);
/// Which of a block's units, which follow each other as its candidates do, candidate `number` uses; -1: none.
int unit_of(const std::vector<Candidate>& candidates, int number);

}  // namespace mindpipe
