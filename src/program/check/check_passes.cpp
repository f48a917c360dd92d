#include <algorithm>
#include <map>
#include <tuple>

#include "program/check/checker_parts.h"

namespace mindpipe {
namespace {

/// What one tape has seen so far: entries of the list, and how far down its backward has come.
struct TapeState {
  int forward = -1, backward = -1;             // the last piece of each
  int backward_below = -1, weight_below = -1;  // the blocks from here on are done
  bool in_halves = false;
};

class PassCheck : RankCheck {
 public:
  PassCheck(const Program& program, const Outline& outline, int rank, Findings& findings)
      : RankCheck(program, outline, rank, findings),
        next_input_(outline.all_chunks()),
        next_weight_(outline.all_chunks()) {}

  void run() {
    for (; index_ < count(); ++index_) {
      const Action& action = list_[index_];
      see(action);
      if (action.queue == Queue::compute) newest_compute_ = index_;
    }
    for (int chunk = 0; chunk < outline_.all_chunks(); ++chunk) {
      if (outline_.rank_of(chunk) != rank_) continue;
      for (int k = 0; k < outline_.micro_batches; ++k) {
        const TapeState& tape = tapes_[{chunk, k}];
        if (tape.forward < 0) missing("forward of micro-batch {}, chunk {} is missing", k, chunk);
        else if (outline_.training && tape.weight_below != outline_.first_block[chunk])
          missing("the tape of micro-batch {}, chunk {} is never emptied", k, chunk);
      }
    }
    for (const auto& [message, places] : receives_)
      if (!used_.count(message)) wrong_at(places.front(), "nothing reads what arrives");
  }

 private:
  using Message = std::tuple<Payload, int, int>;  // payload, cut, micro-batch

  void see(const Action& action) {
    switch (action.kind) {
      case ActionKind::forward:
        return forward(action);
      case ActionKind::backward:
      case ActionKind::backward_input:
        return backward(action);
      case ActionKind::backward_weight:
        return weight(action);
      case ActionKind::send:
        if (crosses_cut(action)) send(action);
        return;
      case ActionKind::receive:
        if (crosses_cut(action))
          receives_[{action.payload, action.first, action.micro_batch}].push_back(index_);
        return;
      case ActionKind::update:
      case ActionKind::reduce:
      case ActionKind::gather:
      case ActionKind::sum_scalar:
        return;
    }
  }

  TapeState& tape_of(const Action& action) { return tapes_[{action.chunk, action.micro_batch}]; }

  /// What crosses `cut` must have arrived, or been made here.
  void needs_input(const Action& action, int cut, int source, bool with_forward) {
    const int peer = outline_.rank_of(source);
    if (peer == rank_) {
      const TapeState& other = tapes_[{source, action.micro_batch}];
      const bool made =
          with_forward ? other.forward >= 0 : other.backward_below == outline_.first_block[source];
      if (!made) wrong("runs before chunk {} has made its input", source);
      return;
    }
    const BoundaryBytes& bytes = outline_.cuts[cut];
    for (const auto& [payload, size] : payloads_of(bytes, with_forward)) {
      if (size == 0) continue;
      const Message message{payload, cut, action.micro_batch};
      used_[message] = index_;
      const auto& places = receives_[message];
      const bool waits = std::any_of(places.begin(), places.end(), [&](int place) {
        return waits_for(action, place) && list_[place].peer == peer;
      });
      if (!waits)
        wrong("does not wait for the {} from rank {}{}", payload, peer,
              places.empty() ? ", which is received later or never" : "");
    }
  }

  void forward(const Action& action) {
    TapeState& tape = tape_of(action);
    const int first = outline_.first_block[action.chunk], last = outline_.first_block[action.chunk + 1];
    if (action.first != first || action.last != last)
      wrong("chunk {} is the blocks [{}, {})", action.chunk, first, last);
    if (tape.forward >= 0) wrong("has run before, as action {}", tape.forward);
    if (action.chunk > 0) needs_input(action, first, action.chunk - 1, true);
    tape.forward = index_;
    tape.backward_below = tape.weight_below = last;
  }

  void backward(const Action& action) {
    TapeState& tape = tape_of(action);
    const int first = outline_.first_block[action.chunk], last = outline_.first_block[action.chunk + 1];
    if (tape.forward < 0) return wrong("runs before its forward");
    if (action.last != tape.backward_below || action.first < first)
      return wrong("the tape's top is block {}", tape.backward_below - 1);
    if (action.last == last) {
      if (action.chunk < outline_.all_chunks() - 1) needs_input(action, last, action.chunk + 1, false);
      if (action.micro_batch != next_input_[action.chunk])
        wrong("micro-batch {} is next (backwards of a unit ascend)", next_input_[action.chunk]);
      tape.in_halves = !::mindpipe::makes_gradients(action);
      if (tape.in_halves && next_weight_[action.chunk] < action.shard * outline_.micro_batches_of_shard())
        wrong("the weight gradients of shard {} are not complete", action.shard - 1);
    } else if (list_[tape.backward].kind != action.kind) {
      wrong("one backward is partly in halves");
    } else if (tape.backward != newest_compute_) {
      wrong("something else runs between the pieces of one backward");
    }
    tape.backward = index_;
    tape.backward_below = action.first;
    if (action.first == first) next_input_[action.chunk] = action.micro_batch + 1;
    if (!tape.in_halves) makes_gradients(action, tape);
    if (tape.in_halves && action.fold) wrong("folds gradients that backward_weight has yet to make");
  }

  void weight(const Action& action) {
    TapeState& tape = tape_of(action);
    if (!tape.in_halves || tape.backward_below != outline_.first_block[action.chunk])
      return wrong("runs before its backward_input");
    if (action.last != tape.weight_below || action.first < outline_.first_block[action.chunk])
      return wrong("the tape's top is block {}", tape.weight_below - 1);
    makes_gradients(action, tape);
  }

  void makes_gradients(const Action& action, TapeState& tape) {
    if (action.micro_batch != next_weight_[action.chunk])
      wrong("micro-batch {} is next (gradients of a unit add up in order)", next_weight_[action.chunk]);
    tape.weight_below = action.first;
    if (action.first == outline_.first_block[action.chunk])
      next_weight_[action.chunk] = action.micro_batch + 1;
    const bool shard_ends = (action.micro_batch + 1) % outline_.micro_batches_of_shard() == 0;
    if (shard_ends && !action.fold)
      wrong("shard {} ends here, but its gradients are not folded", action.shard);
    if (!shard_ends && action.fold) wrong("folds shard {} before its end", action.shard);
  }

  void send(const Action& action) {
    const bool with_forward = travels_forward(action.payload);
    const TapeState& tape = tape_of(action);
    const int producer = with_forward                                                ? tape.forward
                         : tape.backward_below == outline_.first_block[action.chunk] ? tape.backward
                                                                                     : -1;
    if (producer < 0 || !waits_for(action, producer)) wrong("does not wait for the pass that makes it");
  }

  int newest_compute_ = -1;
  std::map<std::pair<int, int>, TapeState> tapes_;
  std::map<Message, std::vector<int>> receives_;
  std::map<Message, int> used_;
  std::vector<int> next_input_, next_weight_;  // of each chunk: the micro-batch whose backward comes next
};

}  // namespace

void check_passes(const Program& program, const Outline& outline, Findings& findings) {
  check_every_rank<PassCheck>(program, outline, findings);
}

}  // namespace mindpipe
