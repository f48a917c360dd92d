#include "app/train/training_loop.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/plan/plan_lanes.h"
#include "app/plan/plan_subnets.h"
#include "app/train/stop_request.h"
#include "app/verbs/main_verb.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

/// What ranks tell each other: of each number the largest is heard.
enum Wish : std::size_t { stop, save_by_time, still_writes, behind_not_finite, wishes };

}  // namespace

TrainingLoop::TrainingLoop(Run& run, RunDirectory* directory, Corpus& corpus, HeldOut* validation,
                           Saves& saves, const RunProgress& begun, RunEnergy* energy)
    : run_(run),
      config_(run.config()),
      worker_(run.worker()),
      directory_(directory),
      corpus_(corpus),
      validation_(validation),
      saves_(saves),
      report_(run),
      energy_(energy),
      log_(run, directory, report_, begun, energy),
      subnets_(run.trains_subnets()),
      done_(begun.step) {}

void TrainingLoop::run() {
  stop_after_step();
  begin();
  while (goes_on()) {
    if (subnets_) train_subnets();
    else take_step();
    evaluate();
    heed();
    save();
  }
  if (stopped_.empty() && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {}, run.stop_after", newest());
  run_.watchdog().arm(config_.watchdog.start, "end", "watchdog.start");
  write_last();
  saves_.save(done_);
  saves_.finish();
}

/// The step or subnet that was trained last, in words.
std::string TrainingLoop::newest() const {
  return subnets_ ? fmt::format("subnet {}", done_ - 1) : fmt::format("step {}", done_);
}

void TrainingLoop::begin() {
  if (!subnets_) return;
  if (run_.is_rank_0()) tell_costs();
  SubnetFeed& subnets = *worker_.subnets();
  subnets.answer_to(*this);
  if (goes_on()) subnets.begin(stream_of(config_, done_), done_);
}

/// What settings cost that are as they are for other reasons.
void TrainingLoop::tell_costs() const {
  const RunPlan& plan = worker_.plan();
  info("{}", cost_of_window(plan.subnets->paper));
  if (const MovesText moves = moves_text(config_, plan); moves.is_warning) {
    std::istringstream lines(moves.text);
    for (std::string line; std::getline(lines, line);) warning("{}", line);
  }
  const std::string stages = stages_left_out(config_);
  if (!stages.empty()) warning("{}", stages);
}

/// The end, or the next place before it where subnets are evaluated or saved.
std::int64_t TrainingLoop::next_drain() const {
  std::int64_t drain = run_.last_step();
  const auto stop_at = [&](std::int64_t every) {
    if (every > 0) drain = std::min(drain, (done_ / every + 1) * every);
  };
  if (validation_ != nullptr) stop_at(config_.train.evaluate_every);
  if (row_of(config_.device.kind).computes) stop_at(config_.checkpoint.every);
  return drain;
}

/// Nothing is under way at a drain, so there the ranks may wait for each other.
void TrainingLoop::train_subnets() {
  done_ = worker_.subnets()->train_to(next_drain());
  limit_ = run_.step_limit();
}

/// Every stage updates by itself, so every rank counts the targets of the whole batch.
void TrainingLoop::load(const Subnet& subnet, StepInput& input) {
  worker_.inputs().load_whole(corpus_, subnet.id * config_.train.batch, input);
  input.rate = rate_at(config_.optimizer.rate, subnet.id, config_.train.steps);
}

std::int64_t TrainingLoop::count(std::int64_t subnet) {
  return worker_.inputs().count_whole(corpus_, subnet * config_.train.batch);
}

void TrainingLoop::admits(std::int64_t first, std::int64_t end) {
  run_.watchdog().arm(run_.subnets_limit(end - first, report_.seconds_each()),
                      fmt::format("subnets {} to {}", first, end - 1), "watchdog.step");
}

bool TrainingLoop::wishes_to_drain() { return wishes_to_stop() || saves_.due_by_time() || not_finite_ >= 0; }

void TrainingLoop::hear(const SubnetScalars& scalars) {
  log_.add(scalars);
  if (energy_ != nullptr) energy_->look();
  if (!std::isfinite(scalars.loss()) && not_finite_ < 0) not_finite_ = scalars.subnet;
}

void TrainingLoop::take_step() {
  const auto step = static_cast<int>(done_);
  limit_ = run_.step_limit(report_.seconds_each());
  run_.watchdog().arm(limit_, fmt::format("step {}", step + 1), "watchdog.step");
  ask_wishes();
  const std::int64_t start = now_ns();
  const std::optional<StepScalars> known =
      worker_.step(corpus_, step, std::int64_t{step} * config_.train.batch,
                   rate_at(config_.optimizer.rate, step, config_.train.steps));
  log_.begun(step, seconds_since(start));
  if (energy_ != nullptr) energy_->look();
  hear_wishes();  // before others agree: a diagnosis, an evaluation
  ++done_;
  if (known) add(*known);
}

void TrainingLoop::add(const StepScalars& scalars) {
  if (!std::isfinite(scalars.loss))
    fail(Exit::diverged, "step {}: the loss is {}; {}", scalars.step + 1, number_text(scalars.loss),
         diagnose(worker_));
  log_.add(scalars);
}

void TrainingLoop::evaluate() {
  std::optional<HeldOutEvaluation> found;
  if (validation_ != nullptr && done_ % config_.train.evaluate_every == 0) {
    add_remaining();
    const std::string after = "after " + newest(), place = subnets_ ? after : newest();
    found = mindpipe::evaluate(run_, *validation_, limit_, "the evaluation " + after,
                               place + ": the validation loss");
    for (const auto& [name, evaluation] : found->several())
      info("{}: {}: {}", place, name, to_string(evaluation));
    info("{}: {}{}", place, to_string(found->all),
         subnets_ ? fmt::format(" of {} subnets", config_.supernet.evaluate_subnets) : "");
    saves_.evaluated(done_, found->all.loss());
    last_found_ = *found;
    if (energy_ != nullptr) energy_->look();
  }
  log_.write_newest(found);
}

void TrainingLoop::report() {
  report_.print_table();
  if (!run_.is_rank_0()) return;
  for (const auto& [name, evaluation] : last_found_.several())
    print(fmt::format("{}: {}\n", name, to_string(evaluation)));
}

/// A stop comes behind what is under way: the step that begins and the next; or of subnets three stretches
/// and the rest of a window at most.
bool TrainingLoop::wishes_to_stop() const {
  if (stop_asked() || (directory_ != nullptr && directory_->stop_asked())) return true;
  if (!run_.is_rank_0() || config_.run.max_walltime == 0) return false;
  const auto ahead = subnets_ ? 3 * SubnetFeed::longest_stretch + config_.supernet.window : 3;
  return run_.seconds() + static_cast<double>(ahead) * report_.seconds_each() > config_.run.max_walltime;
}

void TrainingLoop::ask_wishes() {
  Agreement::Numbers mine(wishes);
  mine[stop] = wishes_to_stop() ? 1 : 0;
  mine[save_by_time] = saves_.due_by_time() ? 1 : 0;
  mine[still_writes] = saves_.writes() ? 1 : 0;
  mine[behind_not_finite] = static_cast<std::uint64_t>(not_finite_ + 1);
  worker_.wiring().agreement->ask(std::move(mine));
}

void TrainingLoop::hear_wishes() {
  heard_ = worker_.wiring().agreement->answer(
      [this] { return fmt::format("all ranks to say what they wish after {}", newest()); });
}

void TrainingLoop::heed() {
  if (subnets_) {
    ask_wishes();
    hear_wishes();
  }
  if (heard_[behind_not_finite] > 0)
    fail(Exit::diverged, "the loss of subnet {} is no number; {}", heard_[behind_not_finite] - 1,
         diagnose_weights(worker_));
  if (heard_[stop] > 0 && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {} as asked", newest());
  save_due_ = heard_[save_by_time] > 0 || saves_.due(done_);
  saves_.attend(heard_[still_writes] == 0);
}

void TrainingLoop::save() {
  if (!save_due_ || !stopped_.empty()) return;
  write_last();  // a run that comes back to this place finds its line
  saves_.save(done_);
}

/// Where the device runs behind the host, what is known of steps is late by one.
void TrainingLoop::add_remaining() {
  if (subnets_) return;
  if (const std::optional<StepScalars> last = worker_.steps().remaining()) add(*last);
}

void TrainingLoop::write_last() {
  add_remaining();
  log_.write_newest();
}

}  // namespace mindpipe
