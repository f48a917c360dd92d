#include "program/lists/stretches.h"

#include "core/give_way.h"
#include "program/check/tree_proof.h"

namespace mindpipe {

Rings rings_of_subnets(int rank) {
  return {{{rank + 1, true, true}, {0, 1}}, {{rank - 1, false, true}, {2, 3}}};
}

Stretches::Stretches(const Outline& outline, const Network& network, const SubnetRules& rules,
                     const std::vector<int>& ranks, std::int64_t first)
    : planner_(outline, network, rules, first), communications_(outline) {
  require_tree(outline.data * outline.shards, outline.data);
  for (const int rank : ranks)
    ranks_.push_back({ListWriter(outline, rank, rings_of_subnets(rank), rules.window),
                      ListCheck(outline, rules, rank, first)});
}

std::vector<CheckedStretch> Stretches::next(std::span<const Subnet> more, bool last) {
  const std::int64_t oldest = planner_.oldest();
  std::vector<Task> starts;
  planner_.next(more, last, [&](const Task& task) { starts.push_back(task); });
  const std::vector<Communication> sequence = communications_.add(starts);
  for (const Task& start : starts)
    for (Rank& rank : ranks_) {
      give_way();
      rank.writer.add(start);
    }
  std::vector<CheckedStretch> stretches;
  for (Rank& rank : ranks_) {
    rank.check.know(more, oldest);
    rank.check.expect(sequence);
    stretches.push_back(rank.check.prove(rank.writer.take(), last));
  }
  return stretches;
}

}  // namespace mindpipe
