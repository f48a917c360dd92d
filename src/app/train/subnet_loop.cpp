#include "app/train/subnet_loop.h"

#include <algorithm>
#include <sstream>

#include "app/plan/plan_lanes.h"
#include "app/plan/plan_subnets.h"
#include "app/train/evaluation.h"
#include "app/train/report_end.h"
#include "app/train/stop_request.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

/// Whether a place between subnets is one of those that lie so far apart; 0: none is.
bool is_due(std::int64_t done, std::int64_t every) { return every > 0 && done % every == 0; }

}  // namespace

SubnetLoop::SubnetLoop(Run& run, RunDirectory* directory, Corpus& corpus, Corpus* validation, Saves& saves,
                       const RunProgress& begun)
    : run_(run),
      config_(run.config()),
      worker_(run.worker()),
      directory_(directory),
      corpus_(corpus),
      validation_(validation),
      saves_(saves),
      log_(run, directory, begun),
      done_(begun.step) {
  worker_.subnets()->answer_to(*this);
}

void SubnetLoop::run() {
  stop_after_step();
  if (run_.is_rank_0()) tell_costs();
  if (goes_on()) worker_.subnets()->begin(stream_of(config_, done_), done_);
  while (goes_on()) {
    done_ = worker_.subnets()->train_to(next_cut());
    evaluate();
    agree();
    if (save_due_ && stopped_.empty()) saves_.save(done_);
  }
  if (stopped_.empty() && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after subnet {}, run.stop_after", done_ - 1);
  run_.watchdog().arm(config_.watchdog.start, "end", "watchdog.start");
  saves_.save(done_);
  saves_.finish();
}

/// What settings cost that are as they are for other reasons.
void SubnetLoop::tell_costs() const {
  const RunPlan& plan = worker_.plan();
  info("{}", cost_of_window(plan.subnets->paper));
  if (const MovesText moves = moves_text(config_, plan); moves.is_warning) {
    std::istringstream lines(moves.text);
    for (std::string line; std::getline(lines, line);) warning("{}", line);
  }
  const std::string stages = stages_left_out(config_);
  if (!stages.empty()) warning("{}", stages);
}

/// The end, or the next place before it where the run is evaluated or saved.
std::int64_t SubnetLoop::next_cut() const {
  std::int64_t cut = run_.last_step();
  const auto stop_at = [&](std::int64_t every) {
    if (every > 0) cut = std::min(cut, (done_ / every + 1) * every);
  };
  if (validation_ != nullptr) stop_at(config_.train.evaluate_every);
  if (row_of(config_.device.kind).computes) stop_at(config_.checkpoint.every);
  return cut;
}

/// Every stage updates by itself, so every rank counts the targets of the whole batch.
void SubnetLoop::load(const Subnet& subnet, StepInput& input) {
  worker_.inputs().load_whole(corpus_, subnet.id * config_.train.batch, input);
  input.rate = rate_at(config_.optimizer.rate, subnet.id, config_.train.steps);
}

std::int64_t SubnetLoop::count(std::int64_t subnet) {
  return worker_.inputs().count_whole(corpus_, subnet * config_.train.batch);
}

void SubnetLoop::admits(std::int64_t first, std::int64_t end) {
  run_.watchdog().arm(run_.subnets_limit(end - first, log_.seconds_each()),
                      fmt::format("subnets {} to {}", first, end - 1), "watchdog.step");
}

/// What is planned already, two stretches and the rest of a window at most, is trained before a cut.
bool SubnetLoop::wishes_to_stop() const {
  const auto ahead = static_cast<double>(3 * SubnetFeed::longest_stretch + config_.supernet.window);
  const bool by_file = directory_ != nullptr && directory_->stop_asked();
  const bool out_of_time = run_.is_rank_0() && config_.run.max_walltime > 0 &&
                           run_.seconds() + ahead * log_.seconds_each() > config_.run.max_walltime;
  return stop_asked() || by_file || out_of_time;
}

bool SubnetLoop::wishes_a_cut() { return wishes_to_stop() || saves_.due_by_time() || log_.not_finite() >= 0; }

void SubnetLoop::evaluate() {
  std::optional<Evaluation> found;
  if (validation_ != nullptr && is_due(done_, config_.train.evaluate_every)) {
    const std::string place = fmt::format("after subnet {}", done_ - 1);
    found = run_.evaluate(*validation_, run_.step_limit(), "the evaluation " + place,
                          place + ": the validation loss");
    info("{}: {} of {} subnets", place, to_string(*found), config_.supernet.evaluate_subnets);
    saves_.evaluated(done_, found->loss());
  }
  log_.write_newest(found);
}

/// One sum tells all ranks what any of them knows.
void SubnetLoop::agree() {
  std::vector<std::int64_t> any{wishes_to_stop(), saves_.due_by_time(), saves_.writes(),
                                run_.is_rank_0() ? log_.not_finite() + 1 : 0};
  worker_.wiring().sum_over_grid(any);
  if (any[3] > 0)
    fail(Exit::diverged, "the loss of subnet {} is no number; {}", any[3] - 1, diagnose_weights(worker_));
  if (any[0] > 0 && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after subnet {} as asked", done_ - 1);
  save_due_ = any[1] > 0 || saves_.due(done_);
  saves_.attend(any[2] == 0);
}

void SubnetLoop::report() { print_subnets_report(run_, log_); }

}  // namespace mindpipe
