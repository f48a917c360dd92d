#include "program/check/pass_book.h"

#include "program/swapped_blocks.h"

namespace mindpipe {

void PassBook::expect(std::int64_t subnet, const std::vector<int>& cut) {
  const Outline& outline = reading_.outline;
  Network& network = networks_[subnet];
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (reading_.rank_of(chunk) == reading_.rank)
      network.chunks[chunk] = {
          {cut[chunk], cut[chunk + 1]}, 0, 0, 0, std::vector<Tape>(outline.micro_batches)};
  network.open = static_cast<int>(network.chunks.size()) * outline.micro_batches;
}

const PassBook::Blocks* PassBook::blocks_of(const Action& action) const {
  const auto network = networks_.find(action.owner.number);
  if (network == networks_.end()) return nullptr;
  const auto chunk = network->second.chunks.find(action.chunk);
  return chunk == network->second.chunks.end() ? nullptr : &chunk->second.blocks;
}

void PassBook::see() {
  const Action& action = reading_.action();
  if (crosses_cut(action)) {
    if (sends(action)) send();
    else receive();
  } else if (is_pass(action)) {
    const auto network = networks_.find(action.owner.number);
    if (network == networks_.end()) return reading_.wrong("its subnet has ended, or is not known");
    pass(network->second);
    // A step's second pass is to be told from one of a step that is over.
    if (network->second.open == 0 && reading_.of != ListOf::step) networks_.erase(network);
  }
  if (action.clears && !is_backward(action))
    reading_.wrong("zeroes gradients, but is not the first to add to any");
  if (action.queue == Queue::compute) newest_compute_ = reading_.here().place;
}

void PassBook::receive() {
  const Action& action = reading_.action();
  if (blocks_of(action) == nullptr) return reading_.wrong("its subnet has ended, or is not known");
  if (!arrived_.try_emplace(message_of(action), Open{reading_.here(), action.peer}).second)
    reading_.wrong("arrives a second time");
}

void PassBook::send() {
  const auto made = owed_.find(message_of(reading_.action()));
  if (made == owed_.end()) return reading_.wrong("sends what no pass has made for it");
  if (!reading_.has_ended(made->second.since)) reading_.wrong("does not wait for the pass that makes it");
  if (made->second.peer != reading_.action().peer) reading_.wrong("is for rank {}", made->second.peer);
  owed_.erase(made);
}

void PassBook::pass(Network& network) {
  const Action& action = reading_.action();
  Chunk& chunk = network.chunks.at(action.chunk);
  Tape& tape = chunk.tapes[action.micro_batch];
  const bool was_whole = is_whole(tape, chunk);
  if (is_forward(action)) {
    forward(chunk, tape);
    if (action.chunk > 0 && action.first == chunk.blocks.first)
      needs_input(network, chunk.blocks.first, action.chunk - 1, true);
    if (action.last == chunk.blocks.last) owes_output(chunk.blocks.last, action.chunk + 1, true);
  } else if (is_backward(action)) {
    backward(network, chunk, tape);
  } else {
    weight(chunk, tape);
  }
  if (!was_whole && is_whole(tape, chunk)) --network.open;
}

/// What crosses `cut` must have arrived, or been made here.
void PassBook::needs_input(const Network& network, int cut, int source, bool with_forward) {
  const Action& action = reading_.action();
  const int peer = reading_.rank_of(source);
  if (peer == reading_.rank) {
    const Chunk& other = network.chunks.at(source);
    const Tape& tape = other.tapes[action.micro_batch];
    const bool made =
        with_forward ? tape.forward_above == other.blocks.last : tape.backward_below == other.blocks.first;
    if (!made) reading_.wrong("runs before chunk {} has made its input", source);
    return;
  }
  for (const auto& [payload, size] : payloads_of(reading_.outline.cuts[cut], with_forward)) {
    if (size == 0) continue;
    const auto message = arrived_.find({action.owner.number, action.micro_batch, cut, payload});
    const bool is_there = message != arrived_.end() && message->second.peer == peer;
    if (!is_there || !reading_.has_ended(message->second.since))
      reading_.wrong("does not wait for the {} from rank {}{}", payload, peer,
                     is_there ? "" : ", which is received later or never");
    if (message != arrived_.end()) arrived_.erase(message);
  }
}

void PassBook::owes_output(int cut, int reader, bool with_forward) {
  const Action& action = reading_.action();
  if (reader < 0 || reader == reading_.outline.all_chunks()) return;
  const int peer = reading_.rank_of(reader);
  if (peer == reading_.rank) return;
  for (const auto& [payload, size] : payloads_of(reading_.outline.cuts[cut], with_forward))
    if (size > 0) owed_[{action.owner.number, action.micro_batch, cut, payload}] = {reading_.here(), peer};
}

void PassBook::forward(Chunk& chunk, Tape& tape) {
  const Action& action = reading_.action();
  const auto& [first, last] = chunk.blocks;
  const bool in_pieces = reading_.outline.training && swaps_blocks(reading_.outline);
  if (action.first < first || action.last > last ||
      (!in_pieces && (action.first != first || action.last != last)))
    reading_.wrong("chunk {} is the blocks [{}, {})", action.chunk, first, last);
  if (in_pieces) require_piece();
  if (tape.forward_above == last || (tape.forward.exists() && action.first == first))
    reading_.wrong("has run before, as action {}", tape.forward.place);
  else if (action.first != (tape.forward.exists() ? tape.forward_above : first))
    reading_.wrong("the blocks before block {} have not run", action.first);
  else if (tape.forward.exists() && tape.forward.place != newest_compute_)
    reading_.wrong("something else runs between the pieces of one forward");
  else if (action.first == first && action.micro_batch != chunk.next_forward++ && reading_.of != ListOf::step)
    reading_.wrong("micro-batch {} is next", chunk.next_forward - 1);
  tape.forward = reading_.here();
  tape.forward_above = action.last;
  if (action.last == last) tape.backward_below = tape.weight_below = last;
}

/// A swapped block is a piece by itself.
void PassBook::require_piece() {
  const Action& action = reading_.action();
  for (int block = action.first; block < action.last; ++block)
    if (is_swapped(reading_.outline, block) && action.last - action.first > 1)
      return reading_.wrong("runs block {}, which is swapped, beside others", block);
}

void PassBook::backward(Network& network, Chunk& chunk, Tape& tape) {
  const Action& action = reading_.action();
  const auto& [first, last] = chunk.blocks;
  if (tape.forward_above != last) return reading_.wrong("runs before its forward");
  if (swaps_blocks(reading_.outline)) require_piece();
  if (action.last != tape.backward_below || action.first < first)
    return reading_.wrong("the tape's top is block {}", tape.backward_below - 1);
  if (action.last == last) {
    if (action.chunk < reading_.outline.all_chunks() - 1) needs_input(network, last, action.chunk + 1, false);
    if (action.micro_batch != chunk.next_input)
      reading_.wrong("micro-batch {} is next (backwards of a unit ascend)", chunk.next_input);
    tape.kind = action.kind;
    tape.in_halves = !::mindpipe::makes_gradients(action);
    if (tape.in_halves && chunk.next_weight < action.shard * reading_.outline.micro_batches_of_shard())
      reading_.wrong("the weight gradients of shard {} are not complete", action.shard - 1);
  } else if (tape.kind != action.kind) {
    reading_.wrong("one backward is partly in halves");
  } else if (tape.backward.place != newest_compute_) {
    reading_.wrong("something else runs between the pieces of one backward");
  }
  tape.backward = reading_.here();
  tape.backward_below = action.first;
  if (action.first == first) {
    chunk.next_input = action.micro_batch + 1;
    owes_output(first, action.chunk - 1, false);
  }
  if (action.clears && action.micro_batch > 0) reading_.wrong("zeroes gradients that others have added to");
  if (!action.clears && action.micro_batch == 0) reading_.wrong("adds to gradients that nobody has zeroed");
  if (tape.in_halves) folds();
  else makes_gradients(chunk, tape);
}

void PassBook::weight(Chunk& chunk, Tape& tape) {
  const Action& action = reading_.action();
  if (!tape.in_halves || tape.backward_below != chunk.blocks.first)
    return reading_.wrong("runs before its backward_input");
  if (action.last != tape.weight_below || action.first < chunk.blocks.first)
    return reading_.wrong("the tape's top is block {}", tape.weight_below - 1);
  makes_gradients(chunk, tape);
}

void PassBook::makes_gradients(Chunk& chunk, Tape& tape) {
  const Action& action = reading_.action();
  if (action.micro_batch != chunk.next_weight)
    reading_.wrong("micro-batch {} is next (gradients of a unit add up in order)", chunk.next_weight);
  tape.weight_below = action.first;
  if (action.first == chunk.blocks.first) chunk.next_weight = action.micro_batch + 1;
  folds();
}

/// What a pass makes is folded at the end of each shard.
void PassBook::folds() {
  const Action& action = reading_.action();
  const bool shard_ends = (action.micro_batch + 1) % reading_.outline.micro_batches_of_shard() == 0;
  if (shard_ends && !action.fold)
    reading_.wrong("shard {} ends here, but its gradients are not folded", action.shard);
  if (!shard_ends && action.fold) reading_.wrong("folds shard {} before its end", action.shard);
}

bool PassBook::is_whole(const Tape& tape, const Chunk& chunk) const {
  return reading_.outline.training ? tape.weight_below == chunk.blocks.first
                                   : tape.forward_above == chunk.blocks.last;
}

void PassBook::end() {
  for (const auto& [subnet, network] : networks_)
    for (const auto& [number, chunk] : network.chunks)
      for (int k = 0; k < reading_.outline.micro_batches; ++k) {
        if (is_whole(chunk.tapes[k], chunk)) continue;
        Action pass = action_of(ActionKind::forward);
        pass.owner = {Owner::subnet, subnet};
        const std::string whose = fmt::format("micro-batch {}{}, chunk {}", k, of_owner(pass), number);
        if (!chunk.tapes[k].forward.exists()) reading_.missing("forward of {} is missing", whose);
        else reading_.missing("the tape of {} is never emptied", whose);
      }
  for (const auto& [message, open] : arrived_)
    reading_.missing("nothing reads the {} of micro-batch {} that arrives from rank {} with action {}",
                     message.payload, message.micro_batch, open.peer, open.since.place);
  for (const auto& [message, open] : owed_)
    reading_.missing("the {} of micro-batch {}, which action {} makes, is never sent to rank {}",
                     message.payload, message.micro_batch, open.since.place, open.peer);
}

}  // namespace mindpipe
