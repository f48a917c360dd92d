#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/channel.h"
#include "comm/reduction.h"
#include "plan/cost_model.h"
#include "program/make_program.h"
#include "runtime/device_order.h"
#include "runtime/device_times.h"
#include "runtime/step_answers.h"
#include "state/gradient_updates.h"
#include "trace/recorder.h"
#include "trace/summary.h"

namespace mindpipe {

/// What a step is fed: this rank's micro-batches, one after the other, and the numbers that its updates need.
struct StepInput {
  Tensor tokens, targets, source;  ///< i32 [micro_batches, samples, sequence]; source may be none
  Tensor source_lengths;           ///< i32 [micro_batches, samples]; may be none
  std::int64_t valid = 0;          ///< targets of this rank's micro-batches that count
  std::int64_t step = 0;           ///< names the step's randomness
  double rate = 0, clip = 0, label_smoothing = 0;
};

/// What a rank is wired to. Channels are none where there is one stage.
struct Wires {
  Channels* channels = nullptr;
  Reductions& reductions;
  Waiting& waiting;
  /// Whether messages and sums are put into the backend's current queue, as its operations are, and done for
  /// the host with that. (So is everything where nobody else takes part.)
  bool queued = false;
  Memory* pinned = nullptr;  ///< of the host, where it may not read the backend's
};

/// Runs a rank's list of actions. Every queue is strictly first in, first out; nothing is ever chosen.
/// One thread does everything. Where the host carries the messages, they move in between, from the backend's
/// progress hook and while waiting; where the device's queues do, the host puts the list into them and waits
/// for nothing.
class Executor {
 public:
  /// `tapes`: bytes of each slot's; `scratch`: of the compute queue.
  Executor(Stage& stage, GradientUpdates& updates, const Outline& outline, const PlannedStep& plan,
           Wires wires, const std::vector<std::size_t>& tapes, std::size_t scratch,
           std::size_t recorded_steps = 8);

  /// Gives back what is known once the step is under way: its own scalars where the host may read the
  /// device's memory, elsewhere those of the step before (of the first: none).
  std::optional<StepScalars> run(const StepInput& input);
  /// The oldest scalars that `run` has not given back, once they are known; none: it has given back all.
  std::optional<StepScalars> remaining() { return answers_.oldest(); }
  /// Losses of forward passes alone: the sum over micro-batches [first, first + micro_batches) of this rank
  /// (on the rank with the head), through all stages.
  double evaluate(const StepInput& input, int first, int micro_batches);

  /// The hook of the backend: moves the other queues, unless that was done a moment ago.
  void look_around() {
    pace_.look([this] { move_others(); });
  }

  const std::vector<Action>& list() const { return list_; }
  /// Bytes that action `index` sends from here (a receive: brings). The list has what one part is on the
  /// average of the updates.
  std::int64_t bytes_of(int index);
  /// Both wait for the device, where it runs behind.
  Recorder& recorder();
  /// Nanoseconds since the beginning, waits by what was waited for.
  const TimeSpent& spent();
  /// Of the compute queue: empty between two steps.
  Arena& scratch() { return scratch_; }
  /// The tape of arena `slot`, for those who run blocks themselves (generation, diagnosis).
  Tape& tape(int slot) { return *slots_[slot].tape; }
  void set_micro_batch(Tape& tape, const StepInput& input, int micro_batch) const;

 private:
  struct Slot {
    Arena arena;
    std::unique_ptr<Tape> tape;
    Boundary gradient;  ///< between the pieces of one backward
    std::size_t scratch_mark = 0;
  };
  struct Begun {  ///< an action that has started and not ended
    std::vector<std::int64_t> requests;
    std::int64_t met_ns = 0;  ///< counted memory: when all that take part were seen to be there
  };
  struct Line {  ///< one queue of this rank
    QueueKey key;
    std::vector<int> actions;
    std::size_t next = 0;     ///< the head
    std::deque<Begun> begun;  ///< the head and perhaps those behind it
  };
  void walk_by_heads();
  void walk_in_list_order();
  void run_scalars(int index);
  void run_compute(int index);
  void decide();
  void take_device_times();
  std::int64_t& work_of(ActionKind kind);
  bool is_over() const;
  bool may_start(const Action& action) const;
  void move_others();
  bool advance(Line& line);
  bool begin(Line& line);
  std::vector<std::int64_t> start(const Action& action);
  bool is_done(Begun& begun, int index);
  void wait_for_sums(int index);
  int awaited(int compute_head) const;
  std::int64_t& wait_for(const Action& awaited);
  static constexpr int channel_of(Payload payload) { return static_cast<int>(payload); }
  std::int64_t waited_ns() const { return static_cast<std::int64_t>(wires_.waiting.seconds() * 1e9); }
  void compute(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action);
  Boundary buffer(int slot, bool gradient);
  Tensor payload_of(const Action& action);
  void copy(const Boundary& from, const Boundary& to);
  void pass_on(const Boundary& b, int peer, bool send);
  std::string describe_wait(int awaited) const;

  Stage& stage_;
  GradientUpdates& updates_;
  Wires wires_;
  Outline outline_;
  std::vector<Action> list_;
  std::vector<BoundaryBytes> buffer_sizes_;
  std::vector<Arena> buffers_;
  std::vector<Slot> slots_;
  Arena scratch_, losses_arena_;
  Tensor losses_;
  std::vector<Line> others_;
  Line compute_;
  DeviceOrder order_;
  int scalars_at_;
  std::vector<char> ended_;
  std::vector<std::int64_t> paper_times_;  ///< counted memory: how long the simulator says each message or
                                           ///< sum takes, a pass's own sums too; else none
  bool moving_ = false;
  Pace pace_;  ///< of looks from within the backend's operations
  const StepInput* input_ = nullptr;
  StepAnswers answers_;
  Recorder recorder_;
  std::optional<DeviceTimes> device_times_;  ///< where the device's queues carry everything
  TimeSpent spent_;
};

}  // namespace mindpipe
