#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/energy/run_energy.h"
#include "app/plan/dry_run.h"
#include "app/plan/open_choice.h"
#include "app/plan/profile_origin.h"
#include "app/run/resume.h"
#include "app/run/subnet_config.h"
#include "app/run/weights.h"
#include "app/train/evaluation.h"
#include "app/train/job_end.h"
#include "app/train/saves.h"
#include "app/train/step_training.h"
#include "app/train/subnet_causes.h"
#include "app/train/subnet_training.h"
#include "app/train/trace_file.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "config/models/choices.h"
#include "config/tokens.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "runtime/trace_reader.h"
#include "supernet/sampler.h"
#include "trace/diagnosis.h"

namespace mindpipe {
namespace {

Corpus training_corpus(const Config& config, const std::vector<Field>& fields, const RunProgress& begun) {
  Corpus corpus(config.data, Subset::train, fields, config.seed, begun.planned_samples, orders_of(config));
  for (const std::string& line : corpus.describe()) info("train: {}", line);
  return corpus;
}

/// What evaluations among steps read; none where the run evaluates nothing.
HeldOut held_out(const Config& config, const std::vector<Field>& fields) {
  return config.train.evaluate_every == 0 ? HeldOut{} : held_out_sources(config, fields);
}

void warn_of_oddities(const Config& config) {
  const RateConfig& rate = config.optimizer.rate;
  const int steps = config.train.steps;
  if (const auto network = network_of(config)) {
    const std::string blind = blindness_of(network->space, network->choice);
    if (!blind.empty()) warning("model.choice: {}", blind);
  }
  if (steps > 0 && rate.warmup > steps)
    warning(
        "optimizer.rate.warmup is {} and train.steps {}: the rate rises to {:.3g}, not to "
        "optimizer.rate.peak "
        "{:.3g} (a shorter warm-up reaches it)",
        rate.warmup, steps, rate_at(rate, steps - 1, steps), rate.peak);
}

/// What a training leaves for others: its weights, unless none were computed, and the trace of its end.
/// False: it left no trace of its steps that can be replayed.
bool write_results(Run& run, TraceClock& clock) {
  Worker& worker = run.worker();
  const Config& config = worker.config();
  const bool emulated = !row_of(config.device.kind).computes;
  if (!emulated) info("weights: {}", save_weights_for_others(worker, config.run.dir));
  if (config.trace.steps == 0) return false;
  write_trace(worker, trace_of(config.run.dir));
  info("trace of the last steps: {} (ui.perfetto.dev opens it)", trace_of(config.run.dir));
  // Whoever reads a directory of weights takes all of its safetensors for weights.
  const std::string path = replayable_trace_of(config.run.dir);
  std::error_code said_by_the_writer;
  if (run.is_rank_0())
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), said_by_the_writer);
  clock.compare(run.world());
  return write_replayable_trace(worker, text_of(run.injections()), path, clock);
}

/// Who was slow in the last steps, and what to change, as `replay` says it.
std::vector<std::string> notes_on(const Run& run, const TrainingLoop& loop, bool has_trace) {
  if (!run.is_rank_0()) return {};
  if (!has_trace) {
    const std::string why = loop.why_untraced();
    return why.empty() ? std::vector<std::string>{} : std::vector{why};
  }
  const std::string path = replayable_trace_of(run.config().run.dir);
  try {
    const StepTrace trace = read_aligned_trace(path);
    return trace.of_subnets ? first_lines_of_subnets(trace, path) : first_lines(trace, path);
  } catch (const Error& error) {  // a training that has come to its end does not fail by what is said of it
    return {fmt::format("nobody can say who was slow: {}", error.what())};
  }
}

/// How far a run has come that goes on from a checkpoint, if any. The order of samples is planned by the
/// start that sees the first of them.
RunProgress begun_from(const std::optional<Resumed>& from, const Config& config) {
  RunProgress begun = from ? from->manifest.progress : RunProgress{};
  if (begun.samples == 0 && begun.left_out.empty())
    begun.planned_samples = std::int64_t{config.train.steps} * config.train.batch;
  return begun;
}

/// Refuses an order of the data that takes more memory than the model, and that is much longer than what this
/// start asks for: a manifest may come from anybody.
void require_planned(const Config& config, const Resumed& from) {
  const std::int64_t planned = from.manifest.progress.planned_samples,
                     own = std::int64_t{config.train.steps} * config.train.batch,
                     fitting = parameters_of(config) * static_cast<std::int64_t>(sizeof(float)) /
                               static_cast<std::int64_t>(sizeof(std::int64_t));
  constexpr std::int64_t much_more = 16;
  MP_REQUIRE(planned <= std::max(fitting, own * much_more), Exit::bad_configuration,
             "{}: the order of its data was planned for {} samples, and takes more memory than the model; "
             "train.steps x train.batch are {} here (to go on in that order set train.steps to {} or more)",
             from.directory, planned, own, planned / config.train.batch / much_more + 1);
}

std::unique_ptr<TrainingLoop> make_training(Run& run, RunDirectory* directory, Corpus& corpus,
                                            HeldOut* validation, Saves& saves, const RunProgress& begun,
                                            RunEnergy* energy) {
  if (row_of(run.config().model.kind).trains_subnets)
    return std::make_unique<SubnetTraining>(run, directory, corpus, validation, saves, begun, energy);
  return std::make_unique<StepTraining>(run, directory, corpus, validation, saves, begun, energy);
}

/// Lets a run's directory say that the run goes on from here. A start that is refused before leaves what an
/// earlier one has written.
void take_over(RunDirectory& directory, Run& run, const RunProgress& begun,
               const std::optional<Resumed>& from) {
  const Config& config = run.config();
  directory.keep_metrics_through(begun.step, from && is_in(from->directory, config.run.dir));
  forget_traces(config.run.dir);
  keep_tokenizer(config);
  directory.write_config(config);
  if (const std::string& order = run.worker().plan().training.found_order; !order.empty())
    directory.write_passes(order);
  directory.write_status({"running", begun.step, "", ""});
}

/// Trains, and tells of it; `prints`: where the time went, too. `job_end`: seconds of the run in which it has
/// to end. `comparison`: on rank 0, may be none. Gives back how the run has ended, as an exit code.
int train_all(Run& run, RunDirectory* directory, Corpus& corpus, HeldOut& validation, Saves& saves,
              const std::optional<Resumed>& from, bool prints, const std::optional<double>& job_end,
              RunComparison* comparison) {
  const RunProgress begun = saves.progress();
  const std::unique_ptr<RunEnergy> energy =
      prints ? make_run_energy(run.worker(), run.places(), directory, begun.step) : nullptr;
  const std::unique_ptr<TrainingLoop> training = make_training(
      run, directory, corpus, validation.empty() ? nullptr : &validation, saves, begun, energy.get());
  TrainingLoop& loop = *training;
  if (job_end) {
    info("the job ends in {}, as scontrol says: the run stops in time for that", human_seconds(*job_end));
    loop.end_within(*job_end);
  }
  loop.compare_with(comparison);
  TraceClock clock(run.injections(), run.world().rank);
  clock.compare(run.world());  // no rank refuses the start any more
  if (directory) take_over(*directory, run, begun, from);
  if (energy) energy->begin();
  if (run.is_rank_0()) info("memory of this rank:\n{}", run.worker().memory().ledger());
  info("ready after {}", human_seconds(run.seconds()));
  loop.run();
  const bool has_trace = write_results(run, clock);
  if (comparison != nullptr) comparison->end(loop.done());
  if (prints) loop.report(notes_on(run, loop, has_trace));
  if (energy) energy->report(loop.trained());
  const std::string& stopped = loop.stopped();
  if (directory) directory->write_status({stopped.empty() ? "done" : "stopped", loop.done(), stopped, ""});
  if (stopped.empty()) return 0;
  info("{}; the same command {}", stopped, saves.next_start(loop.done()));
  if (directory) directory->forget_stop();
  return static_cast<int>(Exit::stopped);
}

/// Whether a supernet's training ended amid a window, from where it cannot go on.
bool ends_amid_window(const Config& config, std::int64_t done) {
  return row_of(config.model.kind).trains_subnets && done % config.supernet.window != 0;
}

/// Refuses to train on amid a window, and with other subnets than those that were trained: a sampler's file
/// may have changed.
void require_same_stream(const Config& config, const Resumed& from) {
  const std::int64_t done = from.manifest.progress.step, window = config.supernet.window;
  MP_REQUIRE(hash_of_choices(config, done) == from.manifest.choices, Exit::bad_configuration,
             "{}: was trained with other subnets than the first {} that supernet.sampler, {}, names now (its "
             "file may go on behind those, and not change them)",
             from.directory, done, config.supernet.sampler);
  MP_REQUIRE(
      !ends_amid_window(config, done) || config.train.steps <= done, Exit::bad_configuration,
      "{}: was saved after {} subnets, amid a window of supernet.window = {}, where the run came to its "
      "end; it cannot go on from there (a run that is to go on later has train.steps between windows, "
      "{} for instance)",
      from.directory, done, window, (done / window + 1) * window);
}

/// What can be done with a run whose steps are all done.
std::string after_the_end(const Config& config, std::int64_t done) {
  return ends_amid_window(config, done)
             ? "it ended amid a window, so more of them need another run.dir, where they begin anew"
             : "a larger train.steps goes on from there";
}

/// A start with nothing left to train; `compare`: a run that it should be held against.
int say_finished(const Config& config, std::int64_t done, const std::string& compare) {
  MP_REQUIRE(compare.empty(), Exit::bad_configuration,
             "--compare {}: {} is finished, so no step of it would be compared (mindpipe-train ckpt diff "
             "compares what two runs have saved; another run.dir trains anew)",
             compare, config.run.dir);
  info("{} is finished: all {} steps are done ({})", config.run.dir, done, after_the_end(config, done));
  return 0;
}

int train_on_this_job(const Arguments& arguments, const Config& given) {
  const bool emulated = !row_of(given.device.kind).computes;
  std::optional<double> job_end;
  if (launch().rank == 0 && given.run.max_walltime == 0) job_end = seconds_to_job_end();
  std::unique_ptr<RunDirectory> locked;
  std::optional<Resumed> from;
  std::optional<PeerStatus> peer;
  const auto on_ranks = [&](Config config, const World& world) {
    if (world.rank == 0) locked = std::make_unique<RunDirectory>(config.run.dir, emulated);
    from = find_checkpoint(world, config);
    if (world.rank != 0) peer.emplace(config.run.dir, emulated);  // rank 0 holds the directory by now
    std::set<std::string> open = arguments.open;
    if (from) config = continued(with_arithmetic_of(*from, config, open), *from, world.rank == 0);
    return with_grid(with_best_settings(config, open, world), world.size);
  };
  Run run(arguments, given, on_ranks, given.run.dir + "/log");
  const std::unique_ptr<RunDirectory> directory = std::move(locked);  // let go of before the run's ranks part
  const Config& config = run.config();
  if (from && is_finished(run.world(), config, *from))
    return say_finished(config, from->manifest.progress.step, arguments.compare);
  if (directory) run.watchdog().forget_earlier_rolls();
  if (from) require_planned(config, *from);
  if (from) require_same_stream(config, *from);
  RunProgress begun = begun_from(from, config);
  const std::vector<Field> fields = fields_of(config);
  Corpus corpus = training_corpus(config, fields, begun);
  HeldOut validation = held_out(config, fields);
  warn_of_oddities(config);
  if (from) run.go_on_from(from->manifest.arithmetic);
  run.make_worker(Purpose::training);
  if (from) {
    const std::int64_t start = now_ns();
    from = load_newest(run, std::move(*from));
    begun = begun_from(from, config);
    info("going on from {}, after step {} ({} in {})", from->directory, begun.step,
         human_bytes(static_cast<double>(from->manifest.file_bytes)), human_seconds(seconds_since(start)));
  }
  if (!from && !config.run.weights.empty() && !emulated) {
    begin_with_weights(run.worker());
    info("the weights to begin with are those of {}", config.run.weights);
  }
  Saves saves(run, directory.get(), begun, from);
  std::optional<RunComparison> comparison;
  if (!arguments.compare.empty() && run.is_rank_0())
    comparison.emplace(arguments.compare, config.run.dir, saves.history());
  return train_all(run, directory.get(), corpus, validation, saves, from, !arguments.is_part, job_end,
                   comparison ? &*comparison : nullptr);
}

}  // namespace

int train(const Arguments& arguments, const Config& given) {
  require_own_profile(given.device, arguments.foreign_profile);
  if (!arguments.dry_run) return train_on_this_job(arguments, given);
  if (launch().rank == 0)
    dry_run(given, arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given), arguments.open);
  return 0;
}

}  // namespace mindpipe
