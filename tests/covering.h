#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace mindpipe {

/// Calls `visit` with every combination of options: dimension i has those from 0 to options[i] - 1.
template <std::size_t dimensions>
void for_each_choice(const std::array<int, dimensions>& options,
                     const std::function<void(const std::array<int, dimensions>&)>& visit) {
  std::array<int, dimensions> choice{};
  for (std::size_t i = 0; i < dimensions;) {
    visit(choice);
    for (i = 0; i < dimensions && ++choice[i] == options[i]; ++i) choice[i] = 0;
  }
}

/// Chooses few of the `possible` choices in which every pair of options of two dimensions occurs that occurs
/// in any of them: greedily the one with the most new pairs. New pairs of a choice only become fewer, so one
/// that had no more of them when it was last counted is passed over.
template <std::size_t dimensions>
std::vector<std::array<int, dimensions>> covering(const std::vector<std::array<int, dimensions>>& possible) {
  using Choice = std::array<int, dimensions>;
  constexpr int most = 16;  // options of one dimension, at most
  std::vector<Choice> chosen;
  std::vector<char> covered(dimensions * dimensions * most * most, 0);
  std::vector<int> counted(possible.size(), static_cast<int>(dimensions * dimensions));
  const auto pair = [&](const Choice& c, std::size_t a, std::size_t b) -> char& {
    return covered[((a * dimensions + b) * most + static_cast<std::size_t>(c[a])) * most +
                   static_cast<std::size_t>(c[b])];
  };
  while (true) {
    int best = 0;
    const Choice* best_choice = nullptr;
    // Begins somewhere else each time, so that ties do not always fall to the first options.
    std::size_t next = possible.empty() ? 0 : chosen.size() * 7919 % possible.size();
    for (std::size_t i = 0; i < possible.size(); ++i) {
      const std::size_t at = next;
      next = at + 1 == possible.size() ? 0 : at + 1;
      if (counted[at] <= best) continue;
      const Choice& c = possible[at];
      int& fresh = counted[at] = 0;
      for (std::size_t a = 0; a < dimensions; ++a)
        for (std::size_t b = a + 1; b < dimensions; ++b) fresh += pair(c, a, b) == 0;
      if (fresh > best) {
        best = fresh;
        best_choice = &c;
      }
    }
    if (best_choice == nullptr) return chosen;
    for (std::size_t a = 0; a < dimensions; ++a)
      for (std::size_t b = a + 1; b < dimensions; ++b) pair(*best_choice, a, b) = 1;
    chosen.push_back(*best_choice);
  }
}

}  // namespace mindpipe
