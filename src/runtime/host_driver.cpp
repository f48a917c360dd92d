#include "runtime/host_driver.h"

#include "program/clock/transfer.h"
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
  // What a pass has just made ready is offered before ports go on.
  if (ports_ != nullptr) advance_all();
  actions_.progress();
  advance_all();
  moving_ = false;
}

void HostDriver::advance_all() {
  if (script_ == nullptr) return;
  for (Cursors::Line& line : script_->cursors.others)
    while (advance(line)) {
    }
}

/// One turn of a queue; true if its head ended.
bool HostDriver::advance(Cursors::Line& line) {
  while (begin(line)) {
  }
  for (std::size_t k = 0; k < line.count && puts_off_ends(); ++k)
    if (Cursors::Begun& begun = line.begun[k];
        begun.met_ns == 0 && actions_.carriers().is_done(begun.request))
      begun.met_ns = now_ns();
  if (line.count == 0 || !has_ended(line.begun[0], line.head())) return false;
  const int index = line.actions[line.next++];
  actions_.ended(*script_, script_->list[index]);
  const std::int64_t end = end_of(line.begun[0]);
  script_->recorder.end(index, end);
  if (script_->pacer.paces()) script_->pacer.end(index, end);
  script_->cursors.ended[index] = 1;
  std::copy(line.begun.begin() + 1, line.begun.end(), line.begun.begin());
  --line.count;
  return true;
}

/// Starts a queue's head, or the one behind it while the head's messages travel: sums and gathers, which end
/// in order and share nothing.
bool HostDriver::begin(Cursors::Line& line) {
  const bool runs_ahead = line.key.group != Members::none;
  const std::size_t at = line.next + line.count;
  if (at >= line.actions.size() || line.count == (runs_ahead ? line.begun.size() : 1)) return false;
  const int index = line.actions[at];
  const Action& action = script_->list[index];
  // No new part begins while a higher class waits.
  if (!script_->cursors.may_start(action) || !actions_.carriers().may_begin(action)) return false;
  const std::int64_t moment = script_->pacer.paces() ? moment_of(line, at) : now_ns();
  script_->recorder.start(index, moment);
  const PaperPorts::Begins begins(ports_, moment, price_of(action, index));
  line.begun[line.count++] = {actions_.start(*script_, action, input_of(action, inputs_)), moment};
  return true;
}

/// When an action may begin in the time of an imitated device: behind what it comes after, and in its turn.
std::int64_t HostDriver::moment_of(const Cursors::Line& line, std::size_t at) const {
  const int index = line.actions[at];
  std::int64_t moment = script_->pacer.ready(script_->list[index], index);
  if (line.count > 0) moment = std::max(moment, line.begun[line.count - 1].moment);
  const std::size_t behind = line.key.group != Members::none ? line.begun.size() : 1;
  return at < behind ? moment : std::max(moment, script_->pacer.ended(line.actions[at - behind]));
}

/// How long ports take for a move whose price a table says, and in how many turns, which both ends know
/// alike.
std::optional<PaperPorts::Priced> HostDriver::price_of(const Action& action, int index) const {
  if (ports_ == nullptr || !is_move(action)) return {};
  const MoveByTable move = move_by_table(script_->outline, action.units);
  if (!move.is_priced) return {};
  const std::int64_t lasts = script_->pacer.time_of(index) - ports_->link_to(action.peer).latency;
  return PaperPorts::Priced{std::max<std::int64_t>(0, lasts),
                            PortRule::turns(move.time, PortRule::most_turns)};
}

bool HostDriver::has_ended(Cursors::Begun& begun, int index) {
  if (puts_off_ends()) return begun.met_ns != 0 && now_ns() - begun.met_ns >= script_->pacer.time_of(index);
  if (!actions_.carriers().is_done(begun.request)) return false;
  if (imitates_ && is_copy(script_->list[index])) {
    begun.met_ns = begun.moment + script_->pacer.time_of(index);
    return now_ns() >= begun.met_ns;
  }
  if (!slowness_.slows_links() || !script_->trains()) return true;
  if (begun.met_ns == 0) {
    const Action& action = script_->list[index];
    begun.met_ns = end_of(begun) + slowness_.later(step_of(action), action);
  }
  return now_ns() >= begun.met_ns;
}

std::int64_t HostDriver::end_of(const Cursors::Begun& begun) {
  if (!imitates_) return now_ns();
  return begun.met_ns != 0 ? begun.met_ns
                           : actions_.carriers().take_end(begun.request).value_or(begun.moment);
}

std::int64_t HostDriver::longer(int index, std::int64_t computes_ns) const {
  const Action& action = script_->list[index];
  if (!slowness_.slows_work() || !script_->trains() || is_communication(action)) return 0;
  return slowness_.longer(step_of(action), action, index, computes_ns);
}

/// Lets real work last longer, as on a slower processor: others' messages move on meanwhile.
void HostDriver::spin(int index, std::int64_t computed_ns) {
  const std::int64_t until = now_ns() + longer(index, computed_ns);
  while (now_ns() < until) move_others();
}

void HostDriver::run_compute(int index) {
  Script& script = *script_;
  const Action& action = script.list[index];
  const std::int64_t start = now_ns(), waited = waited_ns();
  script.recorder.start(index, start);
  script.computes = index;
  actions_.start(script, action, input_of(action, inputs_));
  if (slowness_.slows_work() && !script.pacer.paces()) spin(index, now_ns() - start - (waited_ns() - waited));
  script.computes = -1;
  ComputeTimes ran{start, now_ns(), waited_ns() - waited, start};
  if (script.pacer.paces())
    ran = paper_.last(script, index, ran, longer(index, paper_.computes(script, index)));
  script.recorder.start(index, ran.posted);
  script.recorder.end(index, ran.end);
  script.cursors.ended[index] = 1;
  ++script.cursors.compute.next;
  wait_inside(script.spent, action.kind) += ran.inside;
  // An imitated sum of scalars lasts behind the call, which is where its ranks waited.
  const bool waited_before = imitates_ && is_communication(action);
  work_of(script.spent, action.kind) += ran.end - ran.start - (waited_before ? 0 : ran.inside);
  if (imitates_) give_back_wait(start - ran.start);
}

/// An imitated action began so long before a late host noticed: that was no wait.
void HostDriver::give_back_wait(std::int64_t late) {
  const std::int64_t given = std::clamp<std::int64_t>(late, 0, newest_wait_.ns);
  if (given > 0) {
    wait_for(script_->spent, newest_wait_.missing) -= given;
    wait_because(script_->waits, newest_wait_.why) -= given;
  }
  newest_wait_ = {};
}

/// Waits until the compute queue's head may start, all is over, or what is missing has ended.
void HostDriver::wait(int index) {
  const int reason = script_->cursors.awaited(index, script_->list);
  const std::int64_t start = now_ns();
  waiting_.until(
      [&] {
        move_others();
        const Cursors& cursors = script_->cursors;
        return cursors.ended[reason] || (index >= 0 && cursors.may_start(script_->list[index])) ||
               cursors.is_over();
      },
      [&] { return describe_wait(reason); });
  const std::int64_t waited = now_ns() - start;
  newest_wait_ = {waited, script_->list[reason].kind,
                  index >= 0 ? script_->list[index].waits : WaitReason::input};
  wait_for(script_->spent, newest_wait_.missing) += waited;
  wait_because(script_->waits, newest_wait_.why) += waited;
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
    if (line->count > 0) {
      const std::string missing = actions_.carriers().describe(line->begun[0].request);
      return described(script, script.list[head]) + (missing.empty() ? "" : ", " + missing);
    }
    const int earlier = script.cursors.missing(script.list[head]);
    awaited = earlier >= 0 ? earlier : head;
    if (earlier < 0) break;
  }
  return described(script, script.list[awaited]);
}

}  // namespace mindpipe
