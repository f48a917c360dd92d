#include "program/lists/stretches.h"

#include "core/give_way.h"
#include "program/check/tree_proof.h"

namespace mindpipe {

Rings rings_of_subnets(int rank) {
  std::vector<int> forwards, backwards;
  for (int buffer = 0; buffer < MessagesInFlight::ring_depth; ++buffer) {
    forwards.push_back(buffer);
    backwards.push_back(MessagesInFlight::ring_depth + buffer);
  }
  return {{{rank + 1, true, true}, forwards}, {{rank - 1, false, true}, backwards}};
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
