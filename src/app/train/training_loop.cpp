#include "app/train/training_loop.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/plan/plan_lanes.h"
#include "app/plan/plan_subnets.h"
#include "app/run/resume.h"
#include "app/train/stop_request.h"
#include "app/verbs/main_verb.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "program/moving_step.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

/// What ranks tell each other: of each number the largest is heard. Behind these come the balancer's.
enum Wish : std::size_t { stop, save_by_time, still_writes, behind_trouble, wishes };

/// How often a run may go back; where the settings leave it open, twice if it makes checkpoints on its way.
int most_rollbacks(const Config& config) {
  if (config.guard.rollbacks >= 0) return config.guard.rollbacks;
  return config.checkpoint.is_periodic() ? 2 : 0;
}

/// "checkpoint.every: 100": when checkpoints are made on the way.
std::string rhythm_of_saves(const CheckpointConfig& config) {
  if (config.every > 0 || config.every_time == 0) return fmt::format("checkpoint.every: {}", config.every);
  return "checkpoint.every_time: " + human_seconds(config.every_time);
}

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
      guard_(run.config(), begun),
      agreed_(begun.step),
      faults_(run),
      subnets_(run.trains_subnets()),
      done_(begun.step),
      walltime_(run.config().run.max_walltime) {}

void TrainingLoop::run() {
  stop_after_step();
  begin();
  do {
    while (goes_on()) {
      if (subnets_) train_subnets();
      else take_step();
      faults_.behind(done_);
      if (is_evaluated()) add_remaining();
      if (goes_back()) continue;
      if (config_.guard.replicas_every > 0 && done_ % config_.guard.replicas_every == 0) compare_replicas();
      evaluate();
      if (goes_back()) continue;
      heed();
      save();
    }
    add_remaining();
  } while (goes_back());
  if (stopped_.empty() && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {}, run.stop_after", newest());
  run_.watchdog().arm(config_.watchdog.start, "end", "watchdog.start");
  write_last();
  compare_replicas();  // who goes on from here has one copy of each weight
  save_newest();
  saves_.finish();
}

/// The step or subnet that was trained last, in words.
std::string TrainingLoop::newest() const {
  return subnets_ ? fmt::format("subnet {}", done_ - 1) : fmt::format("step {}", done_);
}

void TrainingLoop::begin() {
  if (row_of(config_.device.kind).computes) replicas_.emplace(worker_);
  if (replicas_ && !replicas_->are_held()) {
    if (config_.guard.replicas_every > 0)
      info("guard.replicas_every is {}, but no rank holds what another does: there is nothing to compare",
           config_.guard.replicas_every);
    replicas_.reset();
  }
  if (!subnets_ && config_.repartition.every > 0) balancer_.emplace(worker_);
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
  if (replicas_) stop_at(config_.guard.replicas_every);
  return drain;
}

/// Nothing is under way at a drain, so there the ranks may wait for each other.
void TrainingLoop::train_subnets() {
  done_ = worker_.subnets()->train_to(next_drain());
  limit_ = run_.step_limit();
}

/// Every stage updates by itself, so every rank counts the targets of the whole batch.
void TrainingLoop::load(const Subnet& subnet, StepInput& input) {
  const std::int64_t first = first_sample(subnet.id);
  faults_.before(subnet.id, first);
  worker_.inputs().load_whole(corpus_, first, input);
  input.rate = rate_at(config_.optimizer.rate, subnet.id, config_.train.steps);
}

std::int64_t TrainingLoop::count(std::int64_t subnet) {
  return worker_.inputs().count_whole(corpus_, first_sample(subnet));
}

void TrainingLoop::admits(std::int64_t first, std::int64_t end) {
  run_.watchdog().arm(run_.subnets_limit(end - first, report_.seconds_each()),
                      fmt::format("subnets {} to {}", first, end - 1), "watchdog.step");
}

bool TrainingLoop::wishes_to_drain() {
  return wishes_to_stop() || saves_.due_by_time() || guard_.is_in_trouble();
}

void TrainingLoop::hear(const SubnetScalars& scalars) {
  log_.add(scalars);
  if (comparison_ != nullptr) comparison_->see(scalars.subnet + 1, {{"loss", scalars.loss()}}, false);
  if (energy_ != nullptr) energy_->look();
  guard_.hear(scalars);
}

void TrainingLoop::take_step() {
  const auto step = static_cast<int>(done_);
  limit_ = run_.step_limit(report_.seconds_each());
  run_.watchdog().arm(limit_, fmt::format("step {}{}", step + 1, tell_move()), "watchdog.step");
  ask_wishes();
  const std::int64_t start = now_ns(), first = first_sample(step);
  faults_.before(step, first);
  const std::optional<StepScalars> known =
      worker_.step(corpus_, step, first, rate_at(config_.optimizer.rate, step, config_.train.steps));
  const double seconds = seconds_since(start);
  log_.begun(step, seconds);
  const int norms_every = config_.train.norms_every;
  if (norms_every > 0 && done_ % norms_every == norms_every - 1 && row_of(config_.device.kind).computes)
    log_.measured(squares_of_tensors(worker_));
  if (energy_ != nullptr) energy_->look();
  hear_wishes();  // before others agree: a diagnosis, an evaluation
  balance(seconds);
  ++done_;
  if (known) add(*known);
}

/// Hears how long stages work, behind a step that took so long.
void TrainingLoop::balance(double seconds) {
  if (!balancer_) return;
  const auto news = balancer_->hear(std::span(heard_).subspan(wishes), seconds);
  if (!news) return;
  info("{}", news->sentence);
  log_.balances(static_cast<int>(done_), *news);
}

/// Says which blocks move in the step that begins. Gives back ", in which block 4 moves ..."; empty: none
/// does.
std::string TrainingLoop::tell_move() {
  const RunPlan* move = worker_.move_behind(done_);
  if (move == nullptr) return "";
  const std::string moved = moved_blocks(move->outline);
  const std::vector<int>& next = move->outline.next_first_block;
  const std::vector<int> cuts(next.begin() + 1, next.end() - 1);
  info("step {} moves {}: the cut becomes {} (on paper that step takes {}, and those before it {})",
       done_ + 1, moved, joined(cuts),
       human_seconds(static_cast<double>(move->training.expected.step) * 1e-9),
       human_seconds(static_cast<double>(worker_.plan().training.expected.step) * 1e-9));
  log_.moves(static_cast<int>(done_), cuts);
  return fmt::format(", which moves {}", moved);
}

void TrainingLoop::add(const StepScalars& scalars) {
  if (guard_.is_in_trouble()) return;  // the device has run ahead
  log_.add(scalars);
  if (comparison_ != nullptr)
    comparison_->see(scalars.step + 1, {{"loss", scalars.loss}, {"gradient_norm", scalars.gradient_norm}},
                     most_rollbacks(config_) > 0);
  guard_.hear(scalars);
}

bool TrainingLoop::goes_back() {
  if (subnets_ || !guard_.is_in_trouble()) return false;
  go_back();
  return true;
}

/// Leaves out all samples since the checkpoint: steps that see them again would have the same bits, and fail
/// again.
void TrainingLoop::go_back() {
  run_.watchdog().arm(config_.watchdog.start, "going back to a checkpoint", "watchdog.start");
  worker_.steps().drop();
  log_.write_newest();
  saves_.finish();
  RunProgress known = saves_.progress();
  if (known.rollbacks >= most_rollbacks(config_))
    fail(Exit::diverged, "{}; {}; the run has gone back {} times (guard.rollbacks: {})", guard_.trouble(),
         diagnose(worker_), known.rollbacks, most_rollbacks(config_));
  const std::string diagnosis = diagnose(worker_);
  const std::optional<Resumed> from = load_newest_good(run_, {guard_.failed_from(), known.rollbacks});
  MP_REQUIRE(from, Exit::diverged, "{}; {}; there is no checkpoint yet to go back to ({})", guard_.trouble(),
             diagnosis, rhythm_of_saves(config_.checkpoint));
  RunProgress progress = from->manifest.progress;
  progress.left_out = known.left_out;
  progress.rollbacks = known.rollbacks + 1;
  progress.skipped_in_a_row = 0;
  const std::int64_t batch = config_.train.batch;
  const SampleRange range{progress.first_sample(progress.step, batch),
                          progress.first_sample(guard_.found_at(), batch) + batch};
  progress.leave_out(range);
  warning("{}; the run goes back to step {} and leaves out samples {} to {}", guard_.trouble(), progress.step,
          range.first, range.end - 1);
  if (directory_ != nullptr) {
    directory_->keep_metrics_through(progress.step, true, LeftOut::stays);
    JsonLine line;
    directory_->append_metrics(line.add("step", progress.step)
                                   .add("left_out_from", range.first)
                                   .add("left_out_to", range.end)
                                   .add("reason", guard_.trouble()));
  }
  if (comparison_ != nullptr) comparison_->forget_behind(progress.step);
  saves_.go_back_to(from->manifest, progress);
  log_.go_back_to(progress);
  guard_.go_on_from(progress);
  if (balancer_) balancer_->begin_anew();
  done_ = agreed_ = progress.step;
  stopped_.clear();
}

bool TrainingLoop::is_evaluated() const {
  return validation_ != nullptr && done_ % config_.train.evaluate_every == 0;
}

void TrainingLoop::evaluate() {
  std::optional<HeldOutEvaluation> found;
  if (is_evaluated()) {
    const std::string after = "after " + newest(), place = subnets_ ? after : newest();
    try {
      found = mindpipe::evaluate(run_, *validation_, limit_, "the evaluation " + after,
                                 place + ": the validation loss");
    } catch (const Error& error) {  // of the same loss on every rank
      const bool may_go_back = !subnets_ && saves_.progress().rollbacks < most_rollbacks(config_);
      if (error.code != Exit::diverged || !may_go_back) throw;
      return guard_.find(done_ - 1, error.what());
    }
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

void TrainingLoop::report(const std::vector<std::string>& notes) {
  report_.print_table(notes);
  if (!run_.is_rank_0()) return;
  for (const auto& [name, evaluation] : last_found_.several())
    print(fmt::format("{}: {}\n", name, to_string(evaluation)));
}

/// A stop comes behind what is under way: the step that begins and the next; or of subnets three stretches
/// and the rest of a window at most.
bool TrainingLoop::wishes_to_stop() const {
  if (stop_asked() || (directory_ != nullptr && directory_->stop_asked())) return true;
  if (!run_.is_rank_0() || walltime_ == 0) return false;
  const auto ahead = subnets_ ? 3 * SubnetFeed::longest_stretch + config_.supernet.window : 3;
  const double steps = static_cast<double>(ahead) * report_.seconds_each();
  return run_.seconds() + steps + saves_.seconds_to_save(done_, ahead) > walltime_;
}

void TrainingLoop::ask_wishes() {
  Agreement::Numbers mine(wishes + (balancer_ ? balancer_->numbers() : 0));
  mine[stop] = wishes_to_stop() ? 1 : 0;
  mine[save_by_time] = saves_.due_by_time() ? 1 : 0;
  mine[still_writes] = saves_.writes() ? 1 : 0;
  mine[behind_trouble] =
      subnets_ && guard_.is_in_trouble() ? static_cast<std::uint64_t>(guard_.found_at()) + 1 : 0;
  if (balancer_) balancer_->say(done_, std::span(mine).subspan(wishes));
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
  if (heard_[behind_trouble] > 0)
    fail(Exit::diverged, "subnet {} is one of {} in a row that updated nothing (guard.skips); {}",
         heard_[behind_trouble] - 1, config_.guard.skips, diagnose_weights(worker_));
  if (heard_[stop] > 0 && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {} as asked", newest());
  save_due_ = heard_[save_by_time] > 0 || saves_.due(done_);
  saves_.attend(heard_[still_writes] == 0);
}

void TrainingLoop::save() {
  if (!save_due_ || !stopped_.empty()) return;
  write_last();  // a run that comes back to this place finds its line
  if (goes_back() || guard_.is_in_a_row()) return;
  compare_replicas();  // whatever is saved has been compared, and is nothing to be suspected later
  save_newest();
}

/// Copies that differ end the job: nobody knows since when, or what else has gone wrong where it did.
void TrainingLoop::compare_replicas() {
  if (!replicas_ || agreed_ == done_) return;
  run_.watchdog().arm(run_.step_limit(report_.seconds_each()),
                      fmt::format("the comparison of copies after {}", newest()), "watchdog.step");
  const std::string difference = replicas_->difference();
  if (!difference.empty()) {
    saves_.finish();  // what is still being written was compared
    fail(Exit::peer_failed,
         "after {}: {}; a bit has changed in memory, or a processor computes something else (start again "
         "without that machine: the run goes on from a checkpoint of before)",
         newest(), difference);
  }
  agreed_ = done_;
}

void TrainingLoop::save_newest() {
  guard_.add_to(saves_.progress());
  saves_.save(done_);
  if (comparison_ != nullptr && !guard_.is_in_a_row()) comparison_->stands(done_);
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
