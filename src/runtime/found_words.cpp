#include "runtime/found_words.h"

#include <bit>

#include "comm/fault_points.h"
#include "core/check.h"

namespace mindpipe {

Agreement::Numbers FoundWords::none(std::int64_t batches) const {
  return Agreement::Numbers(1 + static_cast<std::size_t>(batches) * of_batch() * (has_complements() ? 2 : 1),
                            0);
}

void FoundWords::add(Agreement::Numbers& words, std::int64_t batch, std::span<const double> numbers,
                     std::int64_t targets) const {
  std::uint64_t* found = &words[1 + static_cast<std::size_t>(batch) * of_batch()];
  for (std::size_t s = 0; s < shards_here() && !is_left_out("forwards", "tell"); ++s)
    found[rank() * shards_here() + s] = std::bit_cast<std::uint64_t>(numbers[s]);
  std::uint64_t* counts = found + shards() + rank() * counts_of_rank;
  counts[0] = static_cast<std::uint64_t>(targets);
  for (std::size_t i = 0; i < Hits::places; ++i)
    counts[1 + i] = static_cast<std::uint64_t>(numbers[shards_here() + i]);
}

void FoundWords::end(Agreement::Numbers& words) const {
  if (!has_complements()) return;
  const std::size_t said_here = said(words);
  const auto complement = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) words[said_here + i - 1] = ~words[i];
  };
  for (std::size_t batch = 1; batch < said_here; batch += of_batch()) {
    complement(batch + rank() * shards_here(), shards_here());
    complement(batch + shards() + rank() * counts_of_rank, counts_of_rank);
  }
}

std::vector<Evaluation> FoundWords::evaluations(const Agreement::Numbers& most) {
  for (std::size_t i = 1; i < said(most) && has_complements(); ++i)
    MP_CHECK(most[i] == ~most[said(most) + i - 1],
             "ranks that share products have found different things of one batch");
  std::vector<Evaluation> all;
  std::vector<double> losses(shards());
  for (std::size_t batch = 1; batch < said(most); batch += of_batch()) {
    Evaluation& evaluation = all.emplace_back();
    for (std::size_t s = 0; s < losses.size(); ++s) losses[s] = std::bit_cast<double>(most[batch + s]);
    tree_.sum_over_shards(losses);
    evaluation.losses = losses.front();
    const std::uint64_t* counts = &most[batch + shards()];
    for (int data_rank = 0; data_rank < layout_.grid.data; ++data_rank, counts += counts_of_rank) {
      evaluation.targets += static_cast<std::int64_t>(counts[0]);
      for (std::size_t i = 0; i < Hits::places; ++i)
        evaluation.hits[i] += static_cast<std::int64_t>(counts[1 + i]);
    }
  }
  return all;
}

}  // namespace mindpipe
