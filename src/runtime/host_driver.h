#pragma once
#include "runtime/actions.h"
#include "runtime/paper_compute.h"
#include "runtime/slowness.h"

namespace mindpipe {

/// How far a run goes: until the compute queue has come to its end, while messages and sums may still be
/// under way, or until all queues have.
enum class Until : std::uint8_t { compute_is_over, all_is_over };

/// Drives a script where the host carries the messages: it starts the head of each queue once what the head
/// comes after has ended, and never chooses. Messages and sums move in between: from the backend's progress
/// hook, and while the compute queue waits.
class HostDriver {
 public:
  HostDriver(Actions& actions, Backend& backend, const Wires& wires)
      : actions_(actions),
        waiting_(wires.waiting),
        ports_(wires.ports),
        imitates_(backend.memory().kind() == Memory::Kind::counted),
        paper_(wires, imitates_, [this] { move_others(); }) {}
  HostDriver(const HostDriver&) = delete;
  HostDriver& operator=(const HostDriver&) = delete;

  /// Runs a script from where it stands. What is still under way then moves on in `move_others`, for which
  /// script and inputs stay where they are, and in the next run, which is the same script's.
  /// `left`: how many passes at the end of the compute queue are left for a later run.
  void run(Script& script, StepInputs inputs, Until until, std::size_t left = 0);
  /// Makes trainings slower on this rank: imitated work lasts longer, real work is followed by spinning.
  void slow_down(const Slowness& slowness) { slowness_ = slowness; }
  /// Moves all queues but the compute queue as far as they go without waiting. It may be called from
  /// anywhere.
  void move_others();

 private:
  /// The newest wait of the compute queue since its last action.
  struct Waited {
    std::int64_t ns = 0;
    ActionKind missing{};
    WaitReason why{};
  };
  void advance_all();
  bool advance(Cursors::Line& line);
  bool begin(Cursors::Line& line);
  bool has_ended(Cursors::Begun& begun, int index);
  std::int64_t step_of(const Action& action) const { return input_of(action, inputs_).step + 1; }
  std::int64_t longer(int index, std::int64_t computes_ns) const;
  void spin(int index, std::int64_t computed_ns);
  std::int64_t moment_of(const Cursors::Line& line, std::size_t at) const;
  std::optional<PaperPorts::Priced> price_of(const Action& action, int index) const;
  /// Whether messages are real and their ends put off.
  bool puts_off_ends() const { return script_->pacer.paces() && !imitates_; }
  std::int64_t end_of(const Cursors::Begun& begun);
  void run_compute(int index);
  void give_back_wait(std::int64_t late);
  void wait(int index);
  std::string describe_wait(int awaited) const;
  std::int64_t waited_ns() const { return static_cast<std::int64_t>(waiting_.seconds() * 1e9); }

  Actions& actions_;
  Waiting& waiting_;
  PaperPorts* ports_;
  bool imitates_;  ///< a device of which nothing but time is there
  PaperCompute paper_;
  Script* script_ = nullptr;  ///< the one that runs, or of which something is under way
  StepInputs inputs_;
  bool moving_ = false;
  Slowness slowness_;
  Waited newest_wait_;
};

}  // namespace mindpipe
