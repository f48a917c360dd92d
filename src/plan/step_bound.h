#pragma once
#include <cstdint>
#include <vector>

#include "config/chosen_blocks.h"
#include "program/clock/prices.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// Times that no simulated step of a layout is below, without its program: what a search sorts layouts by.
/// A stage cannot begin before the first micro-batch has come to it, has all its passes to do, and its last
/// gradient has the way back to go. Every update waits for the decision on the whole step.
class StepBound {
 public:
  /// `outline`: priced blocks and units, the schedule's degrees and the place of each chunk; its cuts are
  /// not used. `halves`: backwards are split.
  StepBound(const Outline& outline, const Network& network, bool halves);

  /// The bound with these cuts, in the form of Outline::first_block.
  std::int64_t of(const std::vector<int>& first_block) const;
  /// The closer bound with the outline's cuts and an order of passes, beside which messages take time, and
  /// copies of swapped blocks one after the other.
  std::int64_t of(const Order& order) const;
  /// How long the stages of one pipeline compute in a step at least, all together, whatever the cuts.
  std::int64_t least_work() const { return outline_.micro_batches * (forward_.back() + whole_.back()); }
  /// Cuts with a low bound: single blocks are moved from `first_block` on while that lowers it.
  std::vector<int> improved(std::vector<int> first_block) const;

 private:
  std::int64_t message(int block, int from, int to, bool forward) const;
  /// How long the segments that leave a stage for the host travel, one after the other.
  std::int64_t longest_copies(const Order& order) const;
  std::int64_t longest_update(const std::vector<int>& first_block) const;

  const Outline& outline_;
  PriceList prices_;
  std::vector<std::int64_t> forward_, input_, whole_, update_;  ///< sums over the blocks before each
};

/// The most micro-batches that each chunk keeps tapes of at once.
std::vector<int> most_in_flight(const Order& order, int chunks);
/// Bytes that a rank which uses a unit holds of it at least: values, its share of masters and moments, and
/// what its gradient is added up in, unless that lies in slabs.
std::int64_t least_held_bytes(const Outline& outline, int unit);
/// Bytes that each stage takes beside its tapes, as far as is known of blocks alone: values, state,
/// gradients, what passes work in, buffers for what crosses its cuts.
std::vector<std::int64_t> bytes_beside_tapes(const Outline& outline);

/// Bytes that each stage takes beside its tapes at least.
std::vector<std::int64_t> least_beside_tapes(const Outline& outline, const ChosenBlocks& recomputed);
/// Bytes that the stage with the most takes at least, however the model is cut: its share of all.
std::int64_t least_memory_of_any_cut(const Outline& outline, const ChosenBlocks& recomputed);

/// Bytes that the stage with the most takes at least: values, state, gradients and tapes. `fills`: whether a
/// stage begins a micro-batch for each stage from it on before its first backward; else it is through all but
/// its last chunk with one for each stage. Of `recomputed` blocks a tape has what enters them, and once what
/// the second forward of one of them keeps.
std::int64_t least_memory(const Outline& outline, const std::vector<int>& first_block, bool fills,
                          const ChosenBlocks& recomputed);
/// Bytes that tapes take on each stage at least with this order of passes, second forwards among them.
std::vector<std::int64_t> least_tapes(const Outline& outline, const Order& order,
                                      const ChosenBlocks& recomputed);
/// Whether each stage has all of its gradients at the same time with this order, so that sharing them among
/// data ranks leaves no memory free.
bool has_all_gradients_at_once(const Outline& outline, const Order& order);
/// Bytes that each stage takes at least with this order of passes, whose tapes are counted.
std::vector<std::int64_t> least_memory(const Outline& outline, const Order& order,
                                       const ChosenBlocks& recomputed);

}  // namespace mindpipe
