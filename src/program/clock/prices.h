#pragma once
#include <cstdint>
#include <span>

#include "program/clock/simulate.h"
#include "program/clock/task.h"
#include "program/clock/transfer.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {

/// What a pass over some blocks consists of, whatever its rank.
struct PassWork {
  std::int64_t blocks = 0;  ///< nanoseconds
  std::int64_t clear = 0;   ///< nanoseconds to zero the gradients of its blocks
  TensorSums sums = {};
  void add(const BlockCost& cost, const PassTraits& traits);
  void operator+=(const PassWork& more) {
    blocks += more.blocks;
    clear += more.clear;
    sums += more.sums;
  }
};

/// What an update of some units consists of, with what is decided about each of them.
struct UpdateWork {
  std::int64_t shares = 0;  ///< nanoseconds of the shares that one rank updates
  int units = 0;
  std::int64_t tensors = 0;  ///< tensors of these units, whose squares a decision adds up
};

/// Sums inside a pass, one behind the other; a price that was measured has them in it.
inline std::int64_t tensor_time(const Outline& outline, const Network& network, const TensorSums& sums) {
  return outline.prices_are_whole ? 0 : network.tensor_time(sums);
}

/// How long everything takes on paper, in nanoseconds: what an outline says of the work, on links of a
/// network. Steps, streams of subnets and of forwards all ask it, so the same work takes the same time.
/// A part of a transfer pays its link's latency; transfers over data go by their degree and roots.
class PriceList {
 public:
  PriceList(const Outline& outline, const Network& network)
      : outline_(outline),
        network_(network),
        tensor_meets_(network.tensor_meets(outline.ranks() > 1, outline.data > 1)) {
    set_calls(network_.calls, outline);
  }

  /// An action of a step's list, or of a list of forwards of a model without choices.
  std::int64_t of(const Action& action, int rank) const;

  /// What a pass over blocks of one candidate each consists of; with `clears`, the zeroing of gradients, too.
  PassWork work_of(const PassTraits& traits, int first, int last, bool clears) const;
  /// A pass with its tensor sums; with `clears`, gradients are zeroed before. A price that was measured has
  /// both in it.
  Price pass(int stage, const PassWork& work, bool clears) const;
  /// A rank's share of the update of one unit: all of it, unless the optimizer is sharded.
  std::int64_t update_of_share(int unit) const;
  void add(UpdateWork& work, int unit) const;
  /// An update that decides for itself: the tensor group exchanges squares, and the last stage's data ranks
  /// the subnet's loss. A price that was measured has these in it.
  std::int64_t update(int stage, const UpdateWork& work, bool has_loss) const;
  /// The norm and the loss of a whole step, which every rank takes part in.
  std::int64_t scalars(int rank) const;

  /// One message.
  Price message(int from, int to, std::int64_t bytes) const;
  /// The messages of one micro-batch across a cut, one behind the other.
  Price message(int from, int to, const BoundaryBytes& cut, bool with_forward) const;
  /// A transfer, or a part of it.
  Price sum(int unit, int part = Task::all_parts) const {
    return over(network_.data, sum_over_data(outline_, unit), part, network_.calls.of_sum);
  }
  Price gather(int unit, int part = Task::all_parts) const {
    return over(network_.data, gather_over_data(outline_, unit), part, network_.calls.of_gather);
  }
  Price exchange(int from, int to, int unit, int part = Task::all_parts) const {
    return over(network_.link(from, to), exchange_of(outline_, unit), part);
  }
  /// States of units: as long as a table says, in turns at the port, else as long as their bytes take.
  Price move(int from, int to, std::span<const int> units) const;
  /// One part of such states in a step, as long as its bytes take.
  Price part_of_move(int from, int to, std::span<const int> units, int part) const {
    return over(network_.link(from, to), move_of(outline_, units), part);
  }

  /// A unit's masters and moments, one way between the host's memory and the device's.
  std::int64_t copy(int unit) const { return network_.copies.time(share_of_state(outline_, unit)); }

  /// The segment of a swapped block, one way.
  std::int64_t copy_of_segment(int block) const {
    return network_.copies.time(bytes_in_segment(outline_, block));
  }

  const Network& network() const { return network_; }

 private:
  /// `calls`: messages that a part is made of.
  static Price over(const Link& link, const Transfer& transfer, int part, int calls = 1);
  /// An exchange of so many numbers, added up by a group of ranks.
  static std::int64_t numbers(const Link& link, int ranks, std::int64_t count);

  const Outline& outline_;
  Network network_;
  bool tensor_meets_ = false;  ///< others, at ports
};

}  // namespace mindpipe
