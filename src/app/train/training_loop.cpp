#include "app/train/training_loop.h"

#include "app/train/evaluation.h"
#include "app/train/stop_request.h"
#include "core/log.h"
#include "optim/rate.h"

namespace mindpipe {

TrainingLoop::TrainingLoop(Run& run, RunDirectory* directory, Corpus& corpus, Corpus* validation,
                           Saves& saves, const RunProgress& begun)
    : run_(run),
      config_(run.config()),
      worker_(run.worker()),
      directory_(directory),
      corpus_(corpus),
      validation_(validation),
      saves_(saves),
      report_(config_, worker_),
      log_(run, directory, report_, begun),
      step_(static_cast<int>(begun.step)) {}

void TrainingLoop::run() {
  stop_after_step();
  for (; goes_on(); ++step_) {
    give_time();
    take_step();
    evaluate();
    write();
    agree();
    save();
  }
  if (stopped_.empty() && step_ < config_.train.steps)
    stopped_ = fmt::format("stopped after step {}, run.stop_after", step_);
  run_.watchdog().arm(config_.watchdog.start, "end", "watchdog.start");
  write_last();
  saves_.save(step_);
  saves_.finish();
}

bool TrainingLoop::evaluates() const {
  return validation_ != nullptr && (step_ + 1) % config_.train.evaluate_every == 0;
}

void TrainingLoop::give_time() {
  limit_ = run_.step_limit(report_.median_step());
  run_.watchdog().arm(limit_, fmt::format("step {}", step_ + 1), "watchdog.step");
}

void TrainingLoop::take_step() {
  const double rate = rate_at(config_.optimizer.rate, step_, config_.train.steps);
  const std::int64_t start = now_ns();
  known_ = worker_.step(corpus_, step_, std::int64_t{step_} * config_.train.batch, rate);
  log_.add(step_, seconds_since(start), rate);
  if (known_ && known_->step < step_) {  // where the device runs behind the host, those of the step before
    log_.judge(*known_);
    log_.write(*known_);
    known_.reset();
  }
  if (evaluates() && !known_) known_ = worker_.steps().remaining();
  if (known_) log_.judge(*known_);
}

void TrainingLoop::evaluate() {
  evaluation_.reset();
  if (!evaluates()) return;
  evaluation_ = run_.evaluate(*validation_, limit_, fmt::format("the evaluation after step {}", step_ + 1),
                              fmt::format("step {}: the validation loss", step_ + 1));
  info("step {}: {}", step_ + 1, to_string(*evaluation_));
  saves_.evaluated(step_ + 1, evaluation_->loss());
}

void TrainingLoop::write() {
  if (known_) log_.write(*known_, evaluation_);
}

/// One sum tells all ranks what any of them knows: whether to stop, to save, and whether one still writes.
void TrainingLoop::agree() {
  const bool out_of_time = run_.is_rank_0() && config_.run.max_walltime > 0 &&
                           run_.seconds() + 2 * report_.median_step() > config_.run.max_walltime;
  const bool by_file = directory_ != nullptr && directory_->stop_asked();
  std::vector<std::int64_t> any{stop_asked() || by_file || out_of_time, saves_.due_by_time(),
                                saves_.writes()};
  worker_.wiring().sum_over_grid(any);
  if (any[0] > 0) stopped_ = fmt::format("stopped after step {} as asked", step_ + 1);
  save_due_ = any[1] > 0 || saves_.due(step_ + 1);
  saves_.attend(any[2] == 0);
}

void TrainingLoop::save() {
  if (!save_due_ || !stopped_.empty()) return;
  write_last();  // a run that comes back to this step finds its line
  saves_.save(step_ + 1);
}

void TrainingLoop::write_last() {
  if (const std::optional<StepScalars> last = worker_.steps().remaining()) {
    log_.judge(*last);
    log_.write(*last);
  }
}

}  // namespace mindpipe
