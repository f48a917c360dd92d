#include "program/assemble.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/bulk_parts.h"
#include "core/check.h"

namespace mindpipe {
namespace {

constexpr std::int64_t bytes_of_scalars = 3 * 8;  // loss, valid tokens, squares of the gradient

/// The payloads that travel one way through a cut, with their sizes.
std::array<std::pair<Payload, std::int64_t>, 2> payloads_of(const BoundaryBytes& cut, bool with_forward) {
  if (with_forward) return {{{Payload::activation, cut.activation}, {Payload::memory, cut.memory}}};
  return {{{Payload::gradient, cut.gradient}, {Payload::memory_gradient, cut.memory_gradient}}};
}

/// Bytes that one rank sends so that `bytes` are summed over the data axis (or scattered, or gathered: half
/// of that).
std::int64_t sent_in_group(const Outline& outline, std::int64_t bytes, bool whole_sum) {
  const std::int64_t once = (bytes * (outline.data - 1) + outline.data - 1) / outline.data;
  return whole_sum ? 2 * once : once;
}

/// Writes the list of one rank.
class Writer {
 public:
  Writer(const Outline& outline, int rank, const std::vector<Work>& work)
      : outline_(outline), rank_(rank), work_(work) {}

  std::vector<Action> write() {
    for (const Work& work : work_) pass(work);
    finish();
    return std::move(list_);
  }

 private:
  /// What the ranks that share a product exchange inside a pass.
  void count_sums(Action& action) const {
    if (action.kind == ActionKind::backward_weight) return;
    for (int block = action.first; block < action.last; ++block) {
      const TensorSums& sums = action.kind == ActionKind::forward ? outline_.blocks[block].forward_sums
                                                                  : outline_.blocks[block].backward_sums;
      action.sums += sums.calls;
      action.bytes += sums.bytes;
    }
  }

  int add(Action action) {
    list_.push_back(std::move(action));
    return static_cast<int>(list_.size()) - 1;
  }

  /// Messages for all payloads that cross the cut before block `cut`; returns their places in the list.
  std::vector<int> messages(ActionKind kind, const Work& work, int cut, int peer, bool with_forward,
                            std::vector<int> after) {
    std::vector<int> places;
    for (const auto& [payload, bytes] : payloads_of(outline_.cuts[cut], with_forward)) {
      if (bytes == 0) continue;
      Action message;
      message.kind = kind;
      message.queue = Queue::channel;
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

  void pass(const Work& work) {
    const bool forward = work.kind == ActionKind::forward, weight = work.kind == ActionKind::backward_weight;
    const int first = outline_.first_block[work.chunk], last = outline_.first_block[work.chunk + 1];
    const int before = work.chunk + (forward ? -1 : 1), behind = work.chunk + (forward ? 1 : -1);
    const auto elsewhere = [&](int chunk) {
      return chunk >= 0 && chunk < outline_.all_chunks() && outline_.rank_of(chunk) != rank_;
    };

    std::vector<int> arrived;
    if (!weight && elsewhere(before))
      arrived =
          messages(ActionKind::receive, work, forward ? first : last, outline_.rank_of(before), forward, {});

    Action action;
    action.kind = work.kind;
    action.chunk = work.chunk;
    action.micro_batch = work.micro_batch;
    action.shard = work.micro_batch / outline_.micro_batches_of_shard();
    action.after = arrived;
    const bool makes_gradients = work.kind == ActionKind::backward || weight;
    action.clears = !forward && !weight && work.micro_batch == 0;
    action.fold = makes_gradients && (work.micro_batch + 1) % outline_.micro_batches_of_shard() == 0;

    int done = -1;
    if (makes_gradients && work.micro_batch == outline_.micro_batches - 1) {
      for (int block = last - 1; block >= first; --block) {
        action.first = block;
        action.last = block + 1;
        action.sums = 0, action.bytes = 0;
        count_sums(action);
        done = add(action);
        action.after.clear();
        reduce(work, block, done);
      }
    } else {
      action.first = first;
      action.last = last;
      count_sums(action);
      done = add(action);
    }
    last_pass_ = done;
    if (!weight && elsewhere(behind))
      messages(ActionKind::send, work, forward ? last : first, outline_.rank_of(behind), forward, {done});
  }

  void reduce(const Work& work, int block, int done) {
    if (outline_.blocks[block].values == 0) return;
    Action action;
    action.kind = ActionKind::reduce;
    action.queue = Queue::group;
    action.group = Members::data;
    action.chunk = work.chunk;
    action.first = block;
    action.last = block + 1;
    action.after = {done};
    const std::int64_t bytes = outline_.blocks[block].gradients;
    reduced_[block] =
        in_parts(action, sent_in_group(outline_, bytes, !outline_.sharded_optimizer), parts_over_data(bytes));
  }

  int parts_over_data(std::int64_t bytes) const {
    return outline_.data > 1 ? parts_of(bytes, outline_.data) : 1;
  }

  /// Writes a bulk transfer of `bytes` as actions of their own; returns the place of the last.
  int in_parts(Action action, std::int64_t bytes, int parts) {
    action.parts = parts;
    int last = -1;
    for (action.part = 0; action.part < parts; ++action.part) {
      action.bytes = bytes * (action.part + 1) / parts - bytes * action.part / parts;
      last = add(action);
    }
    return last;
  }

  /// Each rank that uses a tied table gets the gradient of every other use, to add them all in model order.
  void exchange_tied(std::vector<int>& before_scalars) {
    for (const TiedTable& table : outline_.tied) {
      std::vector<int> ranks;
      for (int block : table.blocks) {
        const int rank = outline_.rank_of(outline_.chunk_of(block));
        if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
      }
      if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) continue;
      for (int block : table.blocks) {
        const int chunk = outline_.chunk_of(block), owner = outline_.rank_of(chunk);
        Action message;
        message.queue = Queue::channel;
        message.payload = Payload::unit;
        message.chunk = chunk;
        message.first = message.last = block;
        const std::int64_t bytes =
            outline_.sharded_optimizer ? (table.bytes + outline_.data - 1) / outline_.data : table.bytes;
        message.parts = parts_of(bytes, 0);
        // What is sent is read until the send ends, and the scalars' first act is to add all uses into the
        // first one's place.
        const auto add_parts = [&] {
          const int last = in_parts(message, bytes, message.parts);
          for (int part = message.parts; part-- > 0;) before_scalars.push_back(last - part);
        };
        if (owner == rank_) {
          MP_CHECK(reduced_.count(block), "block {} uses a tied table but has no parameters", block);
          message.kind = ActionKind::send;
          message.after = {reduced_.at(block)};
          for (int rank : ranks) {
            if (rank == rank_) continue;
            message.peer = rank;
            add_parts();
          }
        } else {
          message.kind = ActionKind::receive;
          message.peer = owner;
          add_parts();
        }
      }
    }
  }

  void finish() {
    std::vector<int> before_scalars;
    for (const auto& [block, place] : reduced_) before_scalars.push_back(place);
    before_scalars.push_back(last_pass_);
    if (outline_.training) exchange_tied(before_scalars);
    Action scalars;
    scalars.kind = ActionKind::sum_scalar;
    scalars.queue = Queue::group;
    scalars.group = Members::grid;
    scalars.payload = Payload::scalar;
    scalars.bytes = outline_.stages * outline_.data > 1 ? bytes_of_scalars : 0;
    scalars.after = before_scalars;
    std::sort(scalars.after.begin(), scalars.after.end());
    const int scalars_at = add(scalars);
    for (const auto& [block, place] : reduced_) {
      Action update;
      update.kind = ActionKind::update;
      update.chunk = list_[place].chunk;
      update.first = block;
      update.last = block + 1;
      update.after = {scalars_at};
      const int updated = add(update);
      if (!outline_.sharded_optimizer) continue;
      Action gather = list_[place];
      gather.kind = ActionKind::gather;
      gather.after = {updated};
      const std::int64_t bytes = outline_.blocks[block].values;
      in_parts(gather, sent_in_group(outline_, bytes, false), parts_over_data(bytes));
    }
  }

  const Outline& outline_;
  int rank_;
  const std::vector<Work>& work_;
  std::vector<Action> list_;
  int last_pass_ = -1;
  std::map<int, int> reduced_;  // block -> place of its reduce, the last part
};

}  // namespace

Program assemble(const Outline& outline, const Order& order) {
  MP_CHECK(static_cast<int>(outline.first_block.size()) == outline.all_chunks() + 1 &&
               outline.first_block.front() == 0 &&
               outline.first_block.back() == static_cast<int>(outline.blocks.size()),
           "{} blocks are not cut into {} chunks", outline.blocks.size(), outline.all_chunks());
  MP_CHECK(outline.cuts.size() >= outline.blocks.size(), "{} cuts for {} blocks", outline.cuts.size(),
           outline.blocks.size());
  for (int chunk = 1; chunk < outline.all_chunks(); ++chunk) {
    const BoundaryBytes& cut = outline.cuts[outline.first_block[chunk]];
    MP_CHECK(cut.activation + cut.memory > 0 && cut.gradient + cut.memory_gradient > 0,
             "nothing crosses the cut before block {}", outline.first_block[chunk]);
  }
  MP_CHECK(outline.shards > 0 && outline.micro_batches % outline.shards == 0, "{} micro-batches in {} shards",
           outline.micro_batches, outline.shards);
  MP_CHECK(static_cast<int>(order.size()) == outline.stages, "an order of {} ranks for {} stages",
           order.size(), outline.stages);
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank)
    program.ranks.push_back(Writer(outline, rank, order[rank]).write());
  return program;
}

}  // namespace mindpipe
