#include "runtime/found_words.h"

#include <bit>

#include "comm/fault_points.h"
#include "core/check.h"

namespace mindpipe {

Agreement::Numbers FoundWords::none(std::int64_t batches) const {
  const std::size_t of_batches = static_cast<std::size_t>(batches) * shards(),
                    of_ranks = static_cast<std::size_t>(layout_.grid.data) * counts_of_rank;
  return Agreement::Numbers(1 + (of_batches + of_ranks) * (layout_.grid.tensor > 1 ? 2 : 1), 0);
}

void FoundWords::add(Agreement::Numbers& words, std::int64_t batch, const std::vector<double>& numbers,
                     std::int64_t targets) const {
  const std::size_t first = 1 + static_cast<std::size_t>(batch) * shards() + rank() * shards_here();
  for (std::size_t s = 0; s < shards_here() && !is_left_out("forwards", "tell"); ++s)
    words[first + s] = std::bit_cast<std::uint64_t>(numbers[s]);
  std::uint64_t* counts = &words[first_count(words) + rank() * counts_of_rank];
  counts[0] += static_cast<std::uint64_t>(targets);
  for (std::size_t i = 0; i < Hits::places; ++i)
    counts[1 + i] += static_cast<std::uint64_t>(numbers[shards_here() + i]);
}

void FoundWords::end(Agreement::Numbers& words) const {
  if (layout_.grid.tensor == 1) return;
  const std::size_t said_here = said(words), losses_end = first_count(words);
  const auto complement = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) words[said_here + i - 1] = ~words[i];
  };
  for (std::size_t first = 1 + rank() * shards_here(); first < losses_end; first += shards())
    complement(first, shards_here());
  complement(losses_end + rank() * counts_of_rank, counts_of_rank);
}

Evaluation FoundWords::evaluation(const Agreement::Numbers& most, std::int64_t batches) {
  for (std::size_t i = 1; i < said(most) && said(most) < most.size(); ++i)
    MP_CHECK(most[i] == ~most[said(most) + i - 1],
             "ranks that share products have found different things of one batch");
  Evaluation evaluation;
  std::vector<double> losses(shards());
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (std::size_t s = 0; s < losses.size(); ++s)
      losses[s] = std::bit_cast<double>(most[1 + static_cast<std::size_t>(batch) * shards() + s]);
    tree_.sum_over_shards(losses);
    evaluation.losses += losses.front();
  }
  const std::uint64_t* counts = &most[first_count(most)];
  for (int data_rank = 0; data_rank < layout_.grid.data; ++data_rank, counts += counts_of_rank) {
    evaluation.targets += static_cast<std::int64_t>(counts[0]);
    for (std::size_t i = 0; i < Hits::places; ++i)
      evaluation.hits[i] += static_cast<std::int64_t>(counts[1 + i]);
  }
  return evaluation;
}

}  // namespace mindpipe
