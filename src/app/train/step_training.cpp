#include "app/train/step_training.h"

#include "app/run/resume.h"
#include "config/config.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "program/moving_step.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

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

void StepTraining::begin() {
  most_rollbacks_ = most_rollbacks(config_);
  if (config_.repartition.every > 0) balancer_.emplace(worker_);
}

void StepTraining::train() {
  const auto step = static_cast<int>(done_);
  limit_ = run_.step_limit(report_->seconds_each());
  run_.watchdog().arm(limit_, fmt::format("step {}{}", step + 1, tell_move()), "watchdog.step");
  wishes_.ask(done_, ahead, balances());
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
  wishes_.hear(newest());  // before others agree: a diagnosis, an evaluation
  balance(seconds);
  ++done_;
  if (known) add(*known);
}

/// Hears how long stages work, behind a step that took so long.
void StepTraining::balance(double seconds) {
  if (!balancer_) return;
  const auto news = balancer_->hear(wishes_.own(), seconds);
  if (!news) return;
  info("{}", news->sentence);
  log_.balances(static_cast<int>(done_), *news);
}

Wishes::Numbers StepTraining::balances() {
  if (!balancer_) return {};
  Wishes::Numbers mine(balancer_->numbers());
  balancer_->say(done_, mine);
  return mine;
}

/// Says which blocks move in the step that begins. Gives back ", in which block 4 moves ..."; empty: none
/// does.
std::string StepTraining::tell_move() {
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

void StepTraining::add(const StepScalars& scalars) {
  if (guard_.is_in_trouble()) return;  // the device has run ahead
  log_.add(scalars);
  if (comparison_ != nullptr)
    comparison_->see(scalars.step + 1, {{"loss", scalars.loss}, {"gradient_norm", scalars.gradient_norm}},
                     most_rollbacks_ > 0);
  guard_.hear(scalars);
}

/// Where the device runs behind the host, what is known of steps is late by one.
void StepTraining::add_remaining() {
  if (const std::optional<StepScalars> last = worker_.steps().remaining()) add(*last);
}

std::string StepTraining::why_untraced() const {
  if (config_.trace.steps == 0)
    return "no step was recorded (trace.steps: 0), so nobody can be said to be slow";
  return worker_.plan().blocks_may_move && worker_.steps().since_taken().steps == 0
             ? "no step has run since blocks moved, so nobody can be said to be slow"
             : "there is no trace to say from who was slow";
}

bool StepTraining::goes_back() {
  if (!guard_.is_in_trouble()) return false;
  go_back();
  return true;
}

/// Leaves out all samples since the checkpoint: steps that see them again would have the same bits, and fail
/// again.
void StepTraining::go_back() {
  run_.watchdog().arm(config_.watchdog.start, "going back to a checkpoint", "watchdog.start");
  worker_.steps().drop();
  log_.write_newest();
  saves_.finish();
  RunProgress known = saves_.progress();
  if (known.rollbacks >= most_rollbacks_)
    fail(Exit::diverged, "{}; {}; the run has gone back {} times (guard.rollbacks: {})", guard_.trouble(),
         diagnose(worker_), known.rollbacks, most_rollbacks_);
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

}  // namespace mindpipe
