#include "app/train/training_loop.h"

#include "app/train/stop_request.h"
#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/log.h"
#include "core/text.h"

namespace mindpipe {
namespace {

/// What ranks tell each other: of each number the largest is heard. Behind these come a kind's own.
enum Wish : std::size_t { stop, save_by_time, still_writes, wishes };

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
      guard_(run.config().guard, begun),
      agreed_(begun.step),
      faults_(run, begun.step),
      done_(begun.step),
      walltime_(run.config().run.max_walltime) {}

void TrainingLoop::run() {
  stop_after_step();
  make_replicas();
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

void TrainingLoop::make_replicas() {
  if (!row_of(config_.device.kind).computes) return;
  replicas_.emplace(worker_);
  if (replicas_->are_held()) return;
  if (config_.guard.replicas_every > 0)
    info("guard.replicas_every is {}, but no rank holds what another does: there is nothing to compare",
         config_.guard.replicas_every);
  replicas_.reset();
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
      if (error.code != Exit::diverged || !may_go_back()) throw;
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
  report_.print_table(notes);
  if (!run_.is_rank_0()) return;
  for (const auto& [name, evaluation] : last_found_.several())
    print(fmt::format("{}: {}\n", name, to_string(evaluation)));
}

TrainingLoop::StopWish TrainingLoop::wish_to_stop() const {
  if (directory_ != nullptr && directory_->stop_asked()) return by_file;
  if (stop_asked()) return by_signal_or_time;
  if (!run_.is_rank_0() || walltime_ == 0) return no_stop;
  const double seconds = static_cast<double>(ahead()) * report_.seconds_each();
  const bool is_late = run_.seconds() + seconds + saves_.seconds_to_save(done_, ahead()) > walltime_;
  return is_late ? by_signal_or_time : no_stop;
}

void TrainingLoop::ask_wishes() {
  Agreement::Numbers mine(wishes);
  mine[stop] = wish_to_stop();
  mine[save_by_time] = saves_.due_by_time() ? 1 : 0;
  mine[still_writes] = saves_.writes() ? 1 : 0;
  const Agreement::Numbers own = own_wishes();
  mine.insert(mine.end(), own.begin(), own.end());
  worker_.wiring().agreement->ask(std::move(mine));
}

void TrainingLoop::hear_wishes() {
  heard_ = worker_.wiring().agreement->answer(
      [this] { return fmt::format("all ranks to say what they wish after {}", newest()); });
}

std::span<const std::uint64_t> TrainingLoop::own_heard() const { return std::span(heard_).subspan(wishes); }

void TrainingLoop::heed() {
  agree();
  if (heard_[stop] > 0 && done_ < config_.train.steps)
    stopped_ = fmt::format("stopped after {} as asked{}", newest(),
                           heard_[stop] == by_file ? " by the file STOP" : "");
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

void TrainingLoop::write_last() {
  add_remaining();
  log_.write_newest();
}

}  // namespace mindpipe
