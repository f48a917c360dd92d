#include <algorithm>

#include "runtime/executor.h"

// The queues beside the compute queue: what begins when, and what it moves.
namespace mindpipe {

bool Executor::may_start(const Action& action) const {
  return std::all_of(action.after.begin(), action.after.end(), [&](int i) { return ended_[i] != 0; });
}

/// All queues but the compute queue, as far as they go without waiting. Called from everywhere, so it does
/// not enter itself.
void Executor::move_others() {
  if (moving_) return;
  moving_ = true;
  if (wires_.channels != nullptr && wires_.channels->under_way() > 0) wires_.channels->progress();
  if (wires_.reductions.under_way() > 0) wires_.reductions.progress();
  if (input_ != nullptr)
    for (Line& line : others_)
      while (advance(line)) {
      }
  moving_ = false;
}

/// One turn of a queue; true if its head ended. The sum of scalars is collective and waits: the main loop
/// runs it.
bool Executor::advance(Line& line) {
  while (begin(line)) {
  }
  if (line.begun.empty() || !is_done(line.begun.front(), line.actions[line.next])) return false;
  const int index = line.actions[line.next++];
  recorder_.end(index, now_ns());
  ended_[index] = 1;
  line.begun.pop_front();
  return true;
}

/// Starts a queue's head, or the one behind it while the head's messages travel: sums and gathers, which end
/// in order and share nothing.
bool Executor::begin(Line& line) {
  const std::size_t at = line.next + line.begun.size(),
                    most =
                        line.key.queue == Queue::group && paper_times_.empty() ? Reductions::parts_ahead : 1;
  if (at == line.actions.size() || line.begun.size() == most) return false;
  const int index = line.actions[at];
  const Action& action = list_[index];
  if (action.kind == ActionKind::sum_scalar || !may_start(action)) return false;
  // No new part begins while a higher class waits.
  if (is_collective(action) &&
      !wires_.reductions.may_begin(action.kind == ActionKind::gather ? TrafficClass::values
                                                                     : TrafficClass::gradients))
    return false;
  recorder_.start(index, now_ns());
  line.begun.push_back({start(action)});
  return true;
}

std::vector<std::int64_t> Executor::start(const Action& action) {
  std::vector<std::int64_t> requests;
  switch (action.kind) {
    case ActionKind::send: {
      const TrafficClass traffic =
          action.payload == Payload::unit ? TrafficClass::gradients : TrafficClass::pipeline;
      return {wires_.channels->send(action.peer, channel_of(action.payload), payload_of(action), traffic)};
    }
    case ActionKind::receive:
      return {wires_.channels->receive(action.peer, channel_of(action.payload), payload_of(action))};
    case ActionKind::reduce:
      for (int block = action.first; block < action.last; ++block)
        for (const GradientUpdates::Root& root : updates_.roots_of(block)) {
          auto pieces = updates_.pieces_of(root.unit, root.gradient, action.part, action.parts);
          requests.push_back(updates_.sharded() ? wires_.reductions.sum_scatter(
                                                      std::move(pieces),
                                                      updates_.own_piece_of(root, action.part, action.parts))
                                                : wires_.reductions.sum(std::move(pieces)));
        }
      return requests;
    case ActionKind::gather:
      for (int block = action.first; block < action.last; ++block)
        for (int unit : updates_.units_updated_by(block)) {
          if (stage_.unit(unit).flat_count() == 0) continue;  // rotary positions have no table
          requests.push_back(wires_.reductions.gather(
              updates_.pieces_of(unit, stage_.unit(unit).flat_values(), action.part, action.parts)));
        }
      return requests;
    default:
      MP_CHECK(false, "no queue runs {}", to_string(action));
      return {};
  }
}

std::int64_t Executor::bytes_of(int index) {
  const Action& action = list_[index];
  if (action.payload == Payload::unit) return static_cast<std::int64_t>(payload_of(action).bytes());
  if (action.kind != ActionKind::reduce && action.kind != ActionKind::gather) return action.bytes;
  const int ranks = wires_.reductions.size(), own = wires_.reductions.rank();
  std::int64_t sent = 0;
  const auto add = [&](int unit, const Tensor& flat, bool scatter, bool gather) {
    const std::vector<Tensor> pieces = updates_.pieces_of(unit, flat, action.part, action.parts);
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != own)
        sent += static_cast<std::int64_t>((scatter ? pieces[peer].bytes() : 0) +
                                          (gather ? pieces[own].bytes() : 0));
  };
  for (int block = action.first; block < action.last; ++block)
    if (action.kind == ActionKind::reduce) {
      for (const GradientUpdates::Root& root : updates_.roots_of(block))
        add(root.unit, root.gradient, true, !updates_.sharded());
    } else {
      for (int unit : updates_.units_updated_by(block))
        add(unit, stage_.unit(unit).flat_values(), false, true);
    }
  return sent;
}

/// Messages of counted memory are empty: once all that take part have met, they take as long as the simulator
/// says.
bool Executor::is_done(Begun& begun, int index) {
  const bool message = is_message(list_[index]);
  const bool met = std::all_of(begun.requests.begin(), begun.requests.end(), [&](std::int64_t request) {
    return message ? wires_.channels->done(request) : wires_.reductions.done(request);
  });
  if (!met || paper_times_.empty()) return met;
  if (begun.met_ns == 0) begun.met_ns = now_ns();
  return now_ns() - begun.met_ns >= paper_times_[index];
}

Tensor Executor::payload_of(const Action& action) {
  const int slot = action.kind == ActionKind::send ? action.slot : action.to_slot;
  switch (action.payload) {
    case Payload::activation:
      return buffer(slot, false).activation;
    case Payload::memory:
      return buffer(slot, false).memory;
    case Payload::gradient:
      return buffer(slot, true).activation;
    case Payload::memory_gradient:
      return buffer(slot, true).memory;
    case Payload::unit:
      return updates_.shared_part(action.first, action.part, action.parts);
    default:
      MP_CHECK(false, "no message carries {}", to_string(action));
      return {};
  }
}

}  // namespace mindpipe
