#include "supernet/subnet.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "config/models/space.h"
#include "core/check.h"
#include "core/text.h"

#include "core/text.h"

namespace mindpipe {
namespace {

/// A line without the spaces and brackets around it.
std::string_view bare(std::string_view line) {
  const auto trim = [&] {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  };
  trim();
  if (line.size() > 1 && line.front() == '[' && line.back() == ']') line = line.substr(1, line.size() - 2);
  trim();
  return line;
}

}  // namespace

std::string written(const std::vector<std::uint8_t>& choice) {
  return joined({choice.begin(), choice.end()});
}

std::string candidate_name(int block, int number) { return fmt::format("blocks.{}.{}", block, number); }

bool has_parameters(const Candidate& candidate) {
  if (candidate.halves) return true;
  switch (candidate.kind) {
    case CandidateKind::identity:
      return candidate.branch.norm == CellNorm::own;
    case CandidateKind::maximum:
    case CandidateKind::average:
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

std::vector<std::uint8_t> read_choice(const Space& space, std::string_view line, const std::string& where) {
  std::vector<std::uint8_t> choice;
  line = bare(line);
  for (std::size_t begin = 0; begin <= line.size() && !line.empty();) {
    const std::size_t comma = std::min(line.find(',', begin), line.size());
    const std::string_view text = bare(line.substr(begin, comma - begin));
    const int block = static_cast<int>(choice.size());
    if (block < space.blocks()) {
      const int count = static_cast<int>(space.candidates(block).size());
      int number = -1;
      if (is_plain_integer(text)) std::from_chars(text.data(), text.data() + text.size(), number);
      MP_REQUIRE(number >= 0 && number < count, Exit::bad_data,
                 "{}: says '{}' for block {}, which has {} candidates (0 to {})", where, printable(text, 20),
                 block, count, count - 1);
      choice.push_back(static_cast<std::uint8_t>(number));
    } else choice.push_back(0);
    begin = comma + 1;
  }
  MP_REQUIRE(static_cast<int>(choice.size()) == space.blocks(), Exit::bad_data,
             "{}: has {} numbers, and {} has {} blocks (one number for each, like 3, 0, 7)", where,
             choice.size(), space.name, space.blocks());
  return choice;
}

}  // namespace mindpipe
