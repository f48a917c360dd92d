#include "runtime/host_driver.h"

#include "runtime/time_account.h"

namespace mindpipe {

void HostDriver::run(Script& script, StepInputs inputs, Until until, std::size_t left) {
  MP_CHECK(script_ == nullptr || script_ == &script, "another list has messages or sums under way");
  script_ = &script;
  inputs_ = inputs;
  Cursors& cursors = script.cursors;
  const auto is_over = [&] {
    return until == Until::all_is_over ? cursors.is_over()
                                       : cursors.compute.next + left >= cursors.compute.actions.size();
  };
  while (!is_over()) {
    move_others();
    const int index = cursors.compute_head();
    if (index >= 0 && cursors.may_start(script.list[index])) run_compute(index);
    else if (!is_over()) wait(index);
  }
  if (cursors.is_over()) script_ = nullptr;
}

void HostDriver::move_others() {
  if (moving_) return;
  moving_ = true;
  actions_.progress();
  if (script_ != nullptr)
    for (Cursors::Line& line : script_->cursors.others)
      while (advance(line)) {
      }
  moving_ = false;
}

/// One turn of a queue; true if its head ended.
bool HostDriver::advance(Cursors::Line& line) {
  while (begin(line)) {
  }
  for (std::size_t k = 0; k < line.count && script_->pacer.paces(); ++k)
    if (Cursors::Begun& begun = line.begun[k]; begun.met_ns == 0 && actions_.is_done(begun.request))
      begun.met_ns = now_ns();
  if (line.count == 0 || !has_ended(line.begun[0], line.head())) return false;
  const int index = line.actions[line.next++];
  actions_.ended(*script_, script_->list[index]);
  script_->recorder.end(index, now_ns());
  script_->cursors.ended[index] = 1;
  std::copy(line.begun.begin() + 1, line.begun.end(), line.begun.begin());
  --line.count;
  return true;
}

/// Starts a queue's head, or the one behind it while the head's messages travel: sums and gathers, which end
/// in order and share nothing. Where times are imitated, those of a closed list are what the simulator says
/// of two that are under way; others are each its own.
bool HostDriver::begin(Cursors::Line& line) {
  const bool runs_ahead = line.key.group != Members::none && (script_->closed || !script_->pacer.paces());
  const std::size_t at = line.next + line.count;
  if (at >= line.actions.size() || line.count == (runs_ahead ? line.begun.size() : 1)) return false;
  const int index = line.actions[at];
  const Action& action = script_->list[index];
  // No new part begins while a higher class waits.
  if (!script_->cursors.may_start(action) || !actions_.may_begin(action)) return false;
  script_->recorder.start(index, now_ns());
  line.begun[line.count++] = {actions_.start(*script_, action, input_of(action, inputs_))};
  return true;
}

/// Messages of counted memory are empty: once all that take part have met, they take as long as the simulator
/// says.
bool HostDriver::has_ended(const Cursors::Begun& begun, int index) const {
  if (!script_->pacer.paces()) return actions_.is_done(begun.request);
  return begun.met_ns != 0 && now_ns() - begun.met_ns >= script_->pacer.time_of(index);
}

/// Lets what began at `start` last, on counted memory, as long as it should. What is priced takes its price,
/// whatever its operations are. Else they take their own time, and their sums, which are empty messages too,
/// pass at the end.
void HostDriver::let_last(int index, std::int64_t start) {
  constexpr std::int64_t pause_ns = 100'000;  // between two passes: the host did something else
  const Script& script = *script_;
  const std::int64_t time = script.pacer.time_of(index);
  backend_.synchronize();
  if (script.outline.priced) {
    // One that was left late shortens the next, as if the host were ahead of the device.
    device_free_ns_ = (start - device_free_ns_ < pause_ns ? device_free_ns_ : start) + time;
    return waiting_.until_time(device_free_ns_);
  }
  if (script.list[index].sums == 0) return;
  const std::int64_t until = (script.pacer.times_whole_passes() ? start : now_ns()) + time;
  waiting_.until([&] { return now_ns() >= until; }, [] { return std::string("the time of tensor sums"); });
}

void HostDriver::run_compute(int index) {
  Script& script = *script_;
  const Action& action = script.list[index];
  const std::int64_t start = now_ns(), waited = waited_ns();
  script.recorder.start(index, start);
  actions_.start(script, action, input_of(action, inputs_));
  if (script.pacer.paces()) let_last(index, start);
  const std::int64_t end = now_ns(), inside = waited_ns() - waited;
  script.recorder.end(index, end);
  script.cursors.ended[index] = 1;
  ++script.cursors.compute.next;
  wait_inside(script.spent, action.kind) += inside;
  work_of(script.spent, action.kind) += end - start - inside;
}

/// Waits until the compute queue's head may start, all is over, or what is missing has ended.
void HostDriver::wait(int index) {
  device_free_ns_ = 0;  // it stands idle until what is missing is here
  const int reason = awaited(index);
  const std::int64_t start = now_ns();
  waiting_.until(
      [&] {
        move_others();
        if (may_go_on(index, reason)) return true;
        await_imitated_end();
        return false;
      },
      [&] { return describe_wait(reason); });
  const std::int64_t waited = now_ns() - start;
  wait_for(script_->spent, script_->list[reason].kind) += waited;
  wait_because(script_->waits, index >= 0 ? script_->list[index].waits : WaitReason::input) += waited;
}

bool HostDriver::may_go_on(int index, int reason) const {
  const Cursors& cursors = script_->cursors;
  return cursors.ended[reason] || (index >= 0 && cursors.may_start(script_->list[index])) ||
         cursors.is_over();
}

/// Meets the end of a message that is imitated awake, where it is near: a wait that sleeps would be late.
void HostDriver::await_imitated_end() {
  constexpr std::int64_t near_ns = 200'000;
  if (!script_->pacer.paces()) return;
  const std::int64_t now = now_ns();
  std::int64_t first = now + near_ns;
  for (const Cursors::Line& line : script_->cursors.others)
    if (line.count > 0 && line.begun[0].met_ns != 0)
      first = std::min(first, line.begun[0].met_ns + script_->pacer.time_of(line.head()));
  if (first < now + near_ns) waiting_.until_time(first);
}

/// The action that the compute queue waits for; at the end of a step, one of those that are left.
int HostDriver::awaited(int compute_head) const {
  const Cursors& cursors = script_->cursors;
  if (compute_head >= 0) return cursors.missing(script_->list[compute_head]);
  const auto left = std::find_if(cursors.others.begin(), cursors.others.end(),
                                 [](const Cursors::Line& l) { return !l.is_over(); });
  return left->head();
}

/// The message or sum at the bottom of a wait, and whose part of it is missing. What is awaited may itself
/// stand behind others in its queue or wait for an action of another queue, so this goes down until it meets
/// one that has been started.
std::string HostDriver::describe_wait(int awaited) const {
  const Script& script = *script_;
  for (std::size_t depth = 0; depth < script.list.size(); ++depth) {
    const Cursors::Line* line = script.cursors.line_of(script.list[awaited]);
    if (line == nullptr) break;
    const int head = line->head();
    if (line->count > 0) return actions_.describe(script, script.list[head], line->begun[0].request);
    const int earlier = script.cursors.missing(script.list[head]);
    awaited = earlier >= 0 ? earlier : head;
    if (earlier < 0) break;
  }
  return Actions::describe(script, script.list[awaited]);
}

}  // namespace mindpipe
