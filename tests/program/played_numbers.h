#pragma once
#include <bit>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "core/sum_lists.h"
#include "program/action.h"
#include "program/schedules/gradient_turns.h"
#include "program/unit_bytes.h"

namespace mindpipe {

/// Where the sums over data of a program find gradients in slabs, and where the first part of each leaves
/// this rank's share.
inline std::map<UnitUse, GradientPlace> places_in(const Program& program, const Outline& outline) {
  std::map<UnitUse, GradientPlace> places;
  for (const auto& list : program.ranks)
    for (const Action& action : list)
      if (outline.sharded_gradients && action.kind == ActionKind::reduce)
        places.try_emplace({action.unit, action.first}, GradientPlace{action.slab, action.apart >= 0});
  return places;
}

/// The numbers of lists that are played: f32 that follow from all that is read, and additions that are
/// rounded, so that any other sum, order, version or micro-batch gives other bits.
class PlayedNumbers {
 public:
  explicit PlayedNumbers(const Outline& outline) : outline_(outline) {}

 protected:
  using Numbers = std::vector<float>;
  using Message = std::vector<Numbers>;  ///< numbers of each data rank
  static constexpr int of_share = 6;     ///< elements of a share

  static float number_of(std::initializer_list<std::int64_t> words) {
    std::uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const std::int64_t word : words) {
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xbf58476d1ce4e5b9u;
      hash ^= hash >> 29;
    }
    return static_cast<float>(hash >> 40) / 16777216.0F - 0.5F;
  }
  static std::int64_t bits(float number) { return std::bit_cast<std::uint32_t>(number); }
  int elements() const { return outline_.data * of_share; }
  Numbers zeros() const { return Numbers(elements(), 0.0F); }
  /// The values that a unit begins with.
  Numbers first_values(int unit) const {
    Numbers values;
    for (int e = 0; e < elements(); ++e) values.push_back(number_of({17, unit, e}));
    return values;
  }

  /// What a block makes of what enters, with these units.
  static float through(const std::map<int, Numbers>& values, int block, const std::vector<int>& units,
                       float in) {
    for (const int unit : units)
      for (const float value : values.at(unit)) in = number_of({block, bits(in), bits(value)});
    return number_of({block, bits(in)});
  }
  void add(Numbers& sum, int block, float gradient, float entered, int half) const {
    sum.resize(elements());
    for (int e = 0; e < elements(); ++e) sum[e] += number_of({block, e, half, bits(gradient), bits(entered)});
  }
  SumTree tree(int data) const { return SumTree(outline_.data * outline_.shards, outline_.data, data); }
  void count(Numbers& root, std::vector<Numbers>& levels, int shard, int data) const {
    root.resize(elements());
    levels.resize(tree(0).levels() + 1, zeros());
    const CounterStep step = counter_step(tree(data), shard);
    for (int level = step.open; level-- > step.last;)
      for (int e = 0; e < elements(); ++e) root[e] = levels[level][e] + root[e];
    if (step.moves_to < 0) return;
    levels[step.moves_to] = root;
    root = zeros();
  }
  /// What the roots of all data ranks give, joined in the tree's order. Root `level` of a rank lies on its
  /// counter; -1 is the one that no leaf has moved there.
  template <class RootOf>
  float joined(const RootOf& root_of) const {
    const SumTree all = tree(0);
    Numbers roots;
    for (int data = 0; data < outline_.data; ++data)
      for (int level = all.roots_of(data) - 1, k = 0; k <= level; ++k)
        roots.push_back(root_of(data, k < level ? k : -1));
    for (const auto& [left, right] : all.of_roots()) roots[left] += roots[right];
    return roots[0];
  }
  /// The elements of a part of a share.
  static std::pair<int, int> part_of(const Action& action) {
    const int parts = std::max(1, action.parts);
    return {of_share * action.part / parts, of_share * (action.part + 1) / parts};
  }

  Outline outline_;
};

}  // namespace mindpipe
