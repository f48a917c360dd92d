#pragma once
#include <map>
#include <vector>

#include "program/check/reading.h"

namespace mindpipe {

/// Follows passes and tapes: every pass of every network that is expected runs once and in order, with what
/// it reads there before; what it makes for another rank is sent, and what arrives is read.
class PassBook {
 public:
  explicit PassBook(Reading& reading) : reading_(reading) {}

  /// Blocks [first, last) of one chunk.
  struct Blocks {
    int first = 0, last = 0;
  };
  /// Passes of a network are to come; `cut`: the first block of each chunk, and the end.
  void expect(std::int64_t subnet, const std::vector<int>& cut);
  /// The blocks of an action's chunk; null: its network has ended, or is not expected.
  const Blocks* blocks_of(const Action& action) const;
  void see();
  /// Here nothing may be open.
  void end();

 private:
  /// What one tape has seen so far, and how far down its backward has come.
  struct Tape {
    ListEntry forward, backward;                 // the last piece of each
    int forward_above = -1;                      // the blocks up to here are done
    int backward_below = -1, weight_below = -1;  // the blocks from here on are done
    ActionKind kind = ActionKind::forward;       // of its backward
    bool in_halves = false;
  };
  struct Chunk {
    Blocks blocks;
    int next_forward = 0, next_input = 0, next_weight = 0;  // the micro-batch whose pass comes next
    std::vector<Tape> tapes = {};
  };
  struct Network {
    std::map<int, Chunk> chunks;
    int open = 0;  ///< tapes whose last pass is to come
  };
  /// Names what crosses a cut.
  struct Message {
    std::int64_t subnet = 0;
    int micro_batch = 0, cut = 0;
    Payload payload = Payload::none;
    auto operator<=>(const Message&) const = default;
  };
  /// One that was received and not read yet, or made and not sent yet.
  struct Open {
    ListEntry since;
    int peer = 0;
  };
  static Message message_of(const Action& action) {
    return {action.owner.number, action.micro_batch, action.first, action.payload};
  }

  void receive();
  void send();
  void pass(Network& network);
  void forward(Chunk& chunk, Tape& tape);
  void backward(Network& network, Chunk& chunk, Tape& tape);
  void weight(Chunk& chunk, Tape& tape);
  void require_piece();
  void folds();
  void makes_gradients(Chunk& chunk, Tape& tape);
  void needs_input(const Network& network, int cut, int source, bool with_forward);
  void owes_output(int cut, int reader, bool with_forward);
  bool is_whole(const Tape& tape, const Chunk& chunk) const;

  Reading& reading_;
  std::map<std::int64_t, Network> networks_;
  std::map<Message, Open> arrived_, owed_;
  std::int64_t newest_compute_ = -1;  ///< place of the newest action of the compute queue
};

}  // namespace mindpipe
