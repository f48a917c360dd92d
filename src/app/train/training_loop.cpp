#include "app/train/training_loop.h"

#include "app/train/stop_request.h"
#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/log.h"

namespace mindpipe {
namespace {

/// None: nothing is held twice, or computed. Collective.
std::optional<Replicas> replicas_of(Run& run) {
  const Config& config = run.config();
  if (!row_of(config.device.kind).computes) return {};
  std::optional<Replicas> replicas(run.worker());
  if (replicas->are_held()) return replicas;
  if (config.guard.replicas_every > 0)
    info("guard.replicas_every is {}, but no rank holds what another does: there is nothing to compare",
         config.guard.replicas_every);
  return {};
}

}  // namespace

TrainingLoop::TrainingLoop(std::unique_ptr<EndReport> report, Run& run, RunDirectory* directory,
                           Corpus& corpus, HeldOut* validation, Saves& saves, const RunProgress& begun,
                           RunEnergy* energy)
    : run_(run),
      config_(run.config()),
      worker_(run.worker()),
      directory_(directory),
      corpus_(corpus),
      validation_(validation),
      saves_(saves),
      report_(std::move(report)),
      wishes_(run, directory, saves, *report_),
      energy_(energy),
      log_(run, directory, *report_, begun, energy),
      guard_(run.config().guard, begun),
      agreed_(begun.step),
      faults_(run, begun.step),
      done_(begun.step) {}

void TrainingLoop::run() {
  stop_after_step();
  if (std::optional<Replicas> held = replicas_of(run_)) replicas_.emplace(std::move(*held));
  log_.begin();
  begin();
  do {
    while (goes_on()) {
      train();
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

bool TrainingLoop::is_evaluated() const {
  return validation_ != nullptr && done_ % config_.train.evaluate_every == 0;
}

void TrainingLoop::evaluate() {
  std::optional<HeldOutEvaluation> found;
  if (is_evaluated()) {
    const std::string at = place();
    try {
      found = mindpipe::evaluate(run_, *validation_, limit_, "the evaluation after " + newest(),
                                 at + ": the validation loss");
    } catch (const Error& error) {  // of the same loss on every rank
      if (error.code != Exit::diverged || saves_.progress().rollbacks >= most_rollbacks_) throw;
      return guard_.find(done_ - 1, error.what());
    }
    for (const auto& [name, evaluation] : found->several())
      info("{}: {}: {}", at, name, to_string(evaluation));
    info("{}: {}{}", at, to_string(found->all), of_what_evaluated());
    saves_.evaluated(done_, found->all.loss());
    last_found_ = *found;
    if (energy_ != nullptr) energy_->look();
  }
  log_.write_newest(found);
}

void TrainingLoop::report(const std::vector<std::string>& notes) {
  report_->print_table(notes);
  if (!run_.is_rank_0()) return;
  for (const auto& [name, evaluation] : last_found_.several())
    print(fmt::format("{}: {}\n", name, to_string(evaluation)));
}

void TrainingLoop::heed() {
  agree();
  if (wishes_.stop() != Wishes::no_stop && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {} as asked{}", newest(),
                           wishes_.stop() == Wishes::by_file ? " by the file STOP" : "");
  save_due_ = wishes_.is_save_due() || saves_.due(done_);
  saves_.attend(!wishes_.still_writes());
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
  run_.watchdog().arm(run_.step_limit(report_->seconds_each()),
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

void TrainingLoop::write_last() {
  add_remaining();
  log_.write_newest();
}

}  // namespace mindpipe
