#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "runtime/evaluation.h"
#include "state/layout.h"

namespace mindpipe {

/// How what the ranks have found of some batches stands in the numbers that they agree on: a wish; then of
/// each batch the losses of each logical data shard, and of each data rank targets and hits. Each rank fills
/// its own entries and leaves 0 elsewhere; a maximum merges them. Ranks that share products fill the same
/// entries and send complements too, so that a disagreement is detected.
class FoundWords {
 public:
  FoundWords(Backend& backend, const Layout& layout) : layout_(layout), tree_(backend, layout.data_shards) {}

  /// The numbers of a rank that has nothing to say yet of so many batches.
  Agreement::Numbers none(std::int64_t batches) const;
  /// Says what this rank has found of a batch: the sum of the losses of each of its data shards, and its hits
  /// (LossSums::evaluated); how many targets count.
  void add(Agreement::Numbers& words, std::int64_t batch, std::span<const double> numbers,
           std::int64_t targets) const;
  /// Ends what this rank says.
  void end(Agreement::Numbers& words) const;
  /// What all have found together of each batch: data shards are added up in their tree, as those of a step
  /// are.
  std::vector<Evaluation> evaluations(const Agreement::Numbers& most);

 private:
  static constexpr std::size_t counts_of_rank = 1 + Hits::places;  ///< targets, then hits
  std::size_t shards() const { return static_cast<std::size_t>(layout_.data_shards); }
  std::size_t shards_here() const { return static_cast<std::size_t>(layout_.local_data_shards()); }
  std::size_t rank() const { return static_cast<std::size_t>(layout_.coord.data); }
  std::size_t of_batch() const {
    return shards() + static_cast<std::size_t>(layout_.grid.data) * counts_of_rank;
  }
  bool has_complements() const { return layout_.grid.tensor > 1; }
  /// How many words there are without complements.
  std::size_t said(const Agreement::Numbers& words) const {
    return has_complements() ? (words.size() + 1) / 2 : words.size();
  }

  const Layout& layout_;
  Communicator tree_;  ///< over all logical data shards, as if they were this rank's
};

}  // namespace mindpipe
