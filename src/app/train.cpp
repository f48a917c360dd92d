#include <cmath>

#include "app/main_verb.h"
#include "app/report_end.h"
#include "app/run.h"
#include "app/stop_request.h"
#include "app/trace_file.h"
#include "app/verbs.h"
#include "app/weights_file.h"
#include "comm/roll_call.h"
#include "core/log.h"
#include "core/terminate.h"
#include "core/text.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

std::string of_step(const StepScalars& s, double rate) { return fmt::format("loss {:.4f} | {} tokens/s", s.loss, human_count(rate)); }

double model_operations(const Config& config, std::int64_t parameters) {
  return 6.0 * static_cast<double>(parameters) + 6.0 * config.model.layers * config.model.width * config.data.sequence;
}

}  // namespace

int train(const Arguments& arguments, const Config& given) {
  if (arguments.dry_run) {
    if (launched_rank() == 0) dry_run(given, arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given));
    return 0;
  }
  Run run(arguments, given);
  const Config& config = run.config();
  const std::string answers = config.run.dir + "/log";
  std::unique_ptr<RunDirectory> directory;
  if (run.speaks()) {
    directory = std::make_unique<RunDirectory>(config.run.dir);
    RollCall(answers).clear();
    directory->write_status({});
  }
  Corpus corpus(config.data, Part::train, config.model, config.seed, static_cast<std::int64_t>(config.train.steps) * config.train.batch);
  for (const std::string& line : corpus.describe()) info("train: {}", line);
  std::unique_ptr<Corpus> validation;
  if (!config.data.validation.empty() && config.train.evaluate_every > 0)
    validation = std::make_unique<Corpus>(config.data, Part::validation, config.model, config.seed);
  if (config.checkpoint.every > 0)
    warning(
        "checkpoint.every is {}, but checkpoints are not written yet: a run that is cut short keeps nothing; its weights are saved when it "
        "ends or is stopped",
        config.checkpoint.every);
  run.make_worker();
  run.call_roll_in(answers);
  Worker& worker = run.worker();
  if (directory) {  // a start that fails before here leaves what an earlier run has written
    directory->keep_metrics_through(0);
    directory->write_config(config);
  }
  if (run.speaks()) info("memory of this rank:\n{}", worker.memory().ledger());
  info("ready after {}", human_seconds(run.seconds()));

  Progress progress(0, config.train.steps);
  EndReport report(config, worker);
  std::int64_t skipped = 0;
  const double tokens = static_cast<double>(worker.layout().tokens());
  std::string stopped;
  for (int step = 0; step < config.train.steps; ++step) {
    const double limit = config.watchdog.step > 0 ? config.watchdog.step : std::max(10 * report.median_step(), 300.0);
    run.watchdog().arm(limit, fmt::format("step {}", step + 1), "watchdog.step");
    const double rate = rate_at(config.optimizer.rate, step, config.train.steps);
    const std::int64_t start = now_ns();
    const StepScalars scalars = worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, rate);
    const double seconds = seconds_since(start);
    if (!std::isfinite(scalars.loss)) fail(Exit::diverged, "step {}: the loss is {}; {}", step + 1, scalars.loss, diagnose(worker));
    if (!scalars.applied) {
      ++skipped;
      warning("step {} changed nothing: {}", step + 1, scalars.valid == 0 ? "no target counts" : "a gradient is not finite");
    }
    report.add_step(seconds, scalars);
    JsonLine line;
    line.add("step", step + 1)
        .add("loss", scalars.loss)
        .add("tokens_per_second", tokens / seconds)
        .add("seconds", seconds)
        .add("rate", rate);
    line.add("gradient_norm", scalars.gradient_norm).add("tokens", scalars.valid).add("skipped", skipped);
    if (step == 0) line.add("seconds_to_first_step", run.seconds() - seconds);
    if (worker.backend().description().starts_with("emulated")) line.add("emulated", true);
    if (validation && (step + 1) % config.train.evaluate_every == 0) {
      run.watchdog().arm(limit * config.train.evaluate_batches, fmt::format("the evaluation after step {}", step + 1),
                         "watchdog.step a batch");
      const double loss = worker.evaluate(*validation, config.train.evaluate_batches);
      line.add("validation_loss", loss);
      info("step {}: validation loss {:.4f}", step + 1, loss);
    }
    const bool out_of_time =
        run.speaks() && config.run.max_walltime > 0 && run.seconds() + 2 * report.median_step() > config.run.max_walltime;
    std::vector<std::int64_t> stop{stop_requests() + (directory && directory->stop_asked() ? 1 : 0) + (out_of_time ? 1 : 0)};
    if (directory) {
      directory->append_metrics(line);
      directory->write_status({"running", step + 1, "", ""});
    }
    progress.update(step + 1, of_step(scalars, tokens / seconds) + (config.device.kind == "emulated" ? " | emulated" : ""));
    worker.sum_over_grid(stop);
    if (stop[0] > 0) {
      stopped = fmt::format("stopped after step {} as asked", step + 1);
      if (directory) directory->write_status({"stopped", step + 1, stopped, ""});
      break;
    }
  }
  run.watchdog().arm(config.watchdog.start, "end", "watchdog.start");
  if (config.device.kind != "emulated") {
    save_weights(worker, config.run.dir + "/model.safetensors");
    info("weights: {}/model.safetensors", config.run.dir);
  }
  if (config.trace.steps > 0) {
    write_trace(worker, config.run.dir + "/trace.json");
    info("trace of the last steps: {}/trace.json (ui.perfetto.dev opens it)", config.run.dir);
  }
  report.print_table(run.speaks(), model_operations(config, worker.plan().parameters));
  if (!stopped.empty()) {
    info("{}; the weights are saved, but no checkpoint to go on from: a requeued job begins again", stopped);
    if (directory) directory->forget_stop();
    return static_cast<int>(Exit::stopped);
  }
  if (directory) directory->write_status({"done", config.train.steps, "", ""});
  return 0;
}

}  // namespace mindpipe
