#include "program/lists/assemble.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/clock/transfer.h"

namespace mindpipe {
namespace {

constexpr std::int64_t bytes_of_scalars = 3 * 8;  // loss, valid tokens, squares of the gradient

/// Writes the list of one rank.
class Writer {
 public:
  Writer(const Outline& outline, int rank, const std::vector<Pass>& work)
      : outline_(outline), rank_(rank), work_(work) {}

  std::vector<Action> write() {
    for (const Pass& work : work_) pass(work);
    finish();
    return std::move(list_);
  }

 private:
  /// What the ranks that share a product exchange inside a pass.
  void count_sums(Action& action) const {
    action.sums = 0;
    action.bytes = 0;
    const auto sums_of = pass_of(action)->sums;
    if (sums_of == nullptr) return;
    for (int block = action.first; block < action.last; ++block) {
      const TensorSums& sums = outline_.cost(block).*sums_of;
      action.sums += sums.calls;
      action.bytes += sums.bytes;
    }
  }

  int add(Action action) {
    list_.push_back(std::move(action));
    return static_cast<int>(list_.size()) - 1;
  }

  /// Messages for all payloads that cross the cut before block `cut`; returns their places in the list.
  std::vector<int> messages(ActionKind kind, const Pass& work, int cut, int peer, bool forward,
                            const std::vector<int>& after) {
    std::vector<int> places;
    for (const auto& [payload, bytes] : payloads_of(outline_.cuts[cut], forward)) {
      if (bytes == 0) continue;
      Action message = action_of(kind);
      message.chunk = work.chunk;
      message.micro_batch = work.micro_batch;
      message.shard = work.micro_batch / outline_.micro_batches_of_shard();
      message.first = message.last = cut;
      message.peer = peer;
      message.payload = payload;
      message.bytes = bytes;
      message.after = after;
      places.push_back(add(message));
    }
    return places;
  }

  void pass(const Pass& work) {
    Action action = action_of(work.kind);
    const bool forward = is_forward(action), travels = forward || is_backward(action);
    const int first = outline_.first_block[work.chunk], last = outline_.first_block[work.chunk + 1];
    const int before = work.chunk + (forward ? -1 : 1), behind = work.chunk + (forward ? 1 : -1);
    const auto elsewhere = [&](int chunk) {
      return chunk >= 0 && chunk < outline_.all_chunks() && outline_.rank_of(chunk) != rank_;
    };
    if (travels && elsewhere(before))
      action.after =
          messages(ActionKind::receive, work, forward ? first : last, outline_.rank_of(before), forward, {});
    action.chunk = work.chunk;
    action.micro_batch = work.micro_batch;
    action.shard = work.micro_batch / outline_.micro_batches_of_shard();
    action.clears = is_backward(action) && work.micro_batch == 0;
    action.fold = makes_gradients(action) && (work.micro_batch + 1) % outline_.micro_batches_of_shard() == 0;
    action.first = first;
    action.last = last;
    if (makes_gradients(action) && work.micro_batch == outline_.micro_batches - 1) {
      by_blocks(action);
    } else {
      count_sums(action);
      last_pass_ = add(action);
    }
    if (travels && elsewhere(behind))
      messages(ActionKind::send, work, forward ? last : first, outline_.rank_of(behind), forward,
               {last_pass_});
  }

  /// The last backward block by block, so that sums over data start while it goes on.
  void by_blocks(Action action) {
    const int first = action.first, last = action.last;
    for (int block = last - 1; block >= first; --block) {
      action.first = block;
      action.last = block + 1;
      count_sums(action);
      last_pass_ = add(action);
      action.after.clear();
      for (const UnitUse& use : outline_.uses_in(block, block + 1)) reduce(use, action.chunk);
    }
  }

  void reduce(const UnitUse& use, int chunk) {
    Action action = action_of(ActionKind::reduce);
    action.chunk = chunk;
    action.unit = use.unit;
    action.first = use.block;
    action.last = use.block + 1;
    action.after = {last_pass_};
    reduced_[use] = in_parts(action, sum_over_data(outline_, use.unit));
  }

  /// Writes a bulk transfer as actions of their own; returns the place of the last.
  int in_parts(Action action, const Transfer& transfer) {
    action.parts = transfer.parts;
    int last = -1;
    for (action.part = 0; action.part < transfer.parts; ++action.part) {
      action.bytes = transfer.of_part(action.part, transfer.bytes);
      last = add(action);
    }
    return last;
  }

  /// Each home of a unit gets the gradient of every use elsewhere, to add them all in model order.
  void exchange(int unit, std::vector<int>& before_scalars) {
    const std::vector<int> homes = outline_.homes_of(unit);
    const Transfer transfer = exchange_of(outline_, unit);
    for (int block : outline_.units[unit].blocks) {
      const int chunk = outline_.chunk_of(block), owner = outline_.rank_of(chunk);
      const bool sends = owner == rank_;
      Action message = action_of(sends ? ActionKind::send : ActionKind::receive);
      message.queue = Queue::bulk;
      message.payload = Payload::unit_gradient;
      message.chunk = chunk;
      message.unit = unit;
      message.first = message.last = block;
      if (sends) message.after = {reduced_.at({unit, block})};
      for (int home : homes) {
        if (sends ? home == rank_ : home != rank_) continue;
        message.peer = sends ? home : owner;
        // It is read until the send ends, and the scalars' first act is to add all uses into its place.
        const int last = in_parts(message, transfer);
        for (int part = transfer.parts; part-- > 0;) before_scalars.push_back(last - part);
      }
    }
  }

  void update(int unit, int scalars) {
    Action action = action_of(ActionKind::update);
    action.unit = unit;
    action.after = {scalars};
    const int updated = add(action);
    if (!outline_.sharded_optimizer) return;
    Action gather = action_of(ActionKind::gather);
    gather.unit = unit;
    gather.after = {updated};
    in_parts(gather, gather_over_data(outline_, unit));
  }

  void finish() {
    const std::vector<int> units = outline_.units_of_rank(rank_);
    std::vector<int> before_scalars;
    for (const auto& [use, place] : reduced_) before_scalars.push_back(place);
    before_scalars.push_back(last_pass_);
    for (int unit : units) exchange(unit, before_scalars);
    Action scalars = action_of(ActionKind::sum_scalar);
    scalars.bytes = outline_.stages * outline_.data > 1 ? bytes_of_scalars : 0;
    scalars.after = before_scalars;
    std::sort(scalars.after.begin(), scalars.after.end());
    const int scalars_at = add(scalars);
    for (int unit : units) update(unit, scalars_at);
  }

  const Outline& outline_;
  int rank_;
  const std::vector<Pass>& work_;
  std::vector<Action> list_;
  int last_pass_ = -1;
  std::map<UnitUse, int> reduced_;  // the place of its reduce, the last part
};

}  // namespace

Program assemble(const Outline& outline, const Order& order) {
  MP_CHECK(static_cast<int>(outline.first_block.size()) == outline.all_chunks() + 1 &&
               outline.first_block.front() == 0 && outline.first_block.back() == outline.all_blocks(),
           "{} blocks are not cut into {} chunks", outline.blocks.size(), outline.all_chunks());
  MP_CHECK(static_cast<int>(outline.cuts.size()) >= outline.all_blocks(), "{} cuts for {} blocks",
           outline.cuts.size(), outline.blocks.size());
  for (int chunk = 1; chunk < outline.all_chunks(); ++chunk) {
    const BoundaryBytes& cut = outline.cuts[outline.first_block[chunk]];
    MP_CHECK(cut.activation + cut.encoder_output > 0 && cut.gradient + cut.encoder_output_gradient > 0,
             "nothing crosses the cut before block {}", outline.first_block[chunk]);
  }
  MP_CHECK(outline.shards > 0 && outline.micro_batches % outline.shards == 0, "{} micro-batches in {} shards",
           outline.micro_batches, outline.shards);
  MP_CHECK(static_cast<int>(order.size()) == outline.stages, "an order of {} ranks for {} stages",
           order.size(), outline.stages);
  for (const auto& candidates : outline.blocks)
    MP_CHECK(candidates.size() == 1, "a step of a block with {} candidates", candidates.size());
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank)
    program.ranks.push_back(Writer(outline, rank, order[rank]).write());
  return program;
}

}  // namespace mindpipe
