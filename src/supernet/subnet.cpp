#include "supernet/subnet.h"

#include <algorithm>

namespace mindpipe {

std::string candidate_name(int block, int number) { return fmt::format("blocks.{}.{}", block, number); }

bool has_parameters(const Candidate& candidate) {
  switch (candidate.kind) {
    case CandidateKind::identity:
      return candidate.branch.norm == CellNorm::own;
    case CandidateKind::none:
    case CandidateKind::add:
    case CandidateKind::multiply:
    case CandidateKind::concat:
      return false;
    default:
      return true;
  }
}

int owner_of_unit(const std::vector<Candidate>& candidates, int number) {
  const Candidate& asked = candidates[number];
  if (!has_parameters(asked)) return -1;
  // In a list of layers each stands for itself, though a space may repeat them.
  const bool shares = asked.branch != CellBranch{} ||
                      std::any_of(candidates.begin(), candidates.end(),
                                  [](const Candidate& c) { return c.branch != CellBranch{}; });
  for (int i = 0; shares && i < number; ++i) {
    const Candidate& other = candidates[i];
    if (other.kind == asked.kind && other.numbers == asked.numbers &&
        other.branch.norm == asked.branch.norm && other.branch.times == asked.branch.times &&
        other.branch.part == asked.branch.part)
      return i;
  }
  return number;
}

int unit_of(const std::vector<Candidate>& candidates, int number) {
  const int owner = owner_of_unit(candidates, number);
  if (owner < 0) return -1;
  int units = 0;
  for (int i = 0; i < owner; ++i) units += owner_of_unit(candidates, i) == i ? 1 : 0;
  return units;
}

}  // namespace mindpipe
