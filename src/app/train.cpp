#include <optional>
#include <utility>

#include "app/main_verb.h"
#include "app/report_end.h"
#include "app/run.h"
#include "app/step_log.h"
#include "app/stop_request.h"
#include "app/trace_file.h"
#include "app/verbs.h"
#include "app/weights_file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"

namespace mindpipe {
namespace {

double model_operations(const Config& config, std::int64_t parameters) {
  return 6.0 * static_cast<double>(parameters) +
         6.0 * config.model.layers * config.model.width * config.data.sequence;
}

}  // namespace

int train(const Arguments& arguments, const Config& given) {
  if (arguments.dry_run) {
    if (launch().rank == 0) dry_run(given, arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given));
    return 0;
  }
  Run run(arguments, given, with_grid, given.run.dir + "/log");
  const Config& config = run.config();
  std::unique_ptr<RunDirectory> directory;
  if (run.is_rank_0()) {
    directory = std::make_unique<RunDirectory>(config.run.dir, config.device.kind == DeviceKind::emulated);
    run.watchdog().forget_earlier_rolls();
    directory->write_status({});
  }
  std::optional<PeerStatus> peer;
  if (!directory) peer.emplace(config.run.dir, config.device.kind == DeviceKind::emulated);
  Corpus corpus(config.data, Part::train, config.model, config.seed,
                static_cast<std::int64_t>(config.train.steps) * config.train.batch);
  for (const std::string& line : corpus.describe()) info("train: {}", line);
  std::unique_ptr<Corpus> validation;
  if (!config.data.validation.empty() && config.train.evaluate_every > 0)
    validation = std::make_unique<Corpus>(config.data, Part::validation, config.model, config.seed);
  if (config.checkpoint.every > 0)
    warning(
        "checkpoint.every is {}, but checkpoints are not written yet: a run that is cut short keeps nothing; "
        "its weights are saved when it "
        "ends or is stopped",
        config.checkpoint.every);
  run.make_worker(Purpose::training);
  Worker& worker = run.worker();
  if (directory) {  // a start that fails before here leaves what an earlier run has written
    directory->keep_metrics_through(0);
    directory->write_config(config);
  }
  if (run.is_rank_0()) info("memory of this rank:\n{}", worker.memory().ledger());
  info("ready after {}", human_seconds(run.seconds()));

  EndReport report(config, worker);
  StepLog log(run, directory.get(), report);
  std::string stopped;
  int last_step = config.train.steps;
  stop_after_step();
  for (int step = 0; step < config.train.steps; ++step) {
    const double limit = run.step_limit(report.median_step());
    run.watchdog().arm(limit, fmt::format("step {}", step + 1), "watchdog.step");
    const double rate = rate_at(config.optimizer.rate, step, config.train.steps);
    const std::int64_t start = now_ns();
    std::optional<StepScalars> known =
        worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, rate);
    log.add(step, seconds_since(start), rate);
    if (known && known->step < step) {
      log.judge(*known);
      log.write(*std::exchange(known, {}));
    }
    std::optional<double> validation_loss;
    const bool evaluates = validation && (step + 1) % config.train.evaluate_every == 0;
    if (evaluates && !known) known = worker.executor().remaining();
    if (known) log.judge(*known);
    if (evaluates) {
      validation_loss =
          run.evaluate(*validation, limit, fmt::format("the evaluation after step {}", step + 1),
                       fmt::format("step {}: the validation loss", step + 1));
      info("step {}: validation loss {:.4f}", step + 1, *validation_loss);
    }
    const bool out_of_time = run.is_rank_0() && config.run.max_walltime > 0 &&
                             run.seconds() + 2 * report.median_step() > config.run.max_walltime;
    std::vector<std::int64_t> stop{(stop_asked() ? 1 : 0) + (directory && directory->stop_asked() ? 1 : 0) +
                                   (out_of_time ? 1 : 0)};
    if (known) log.write(*known, validation_loss);
    worker.sum_over_grid(stop);
    if (stop[0] > 0) {
      stopped = fmt::format("stopped after step {} as asked", step + 1);
      last_step = step + 1;
      break;
    }
  }
  run.watchdog().arm(config.watchdog.start, "end", "watchdog.start");
  if (const std::optional<StepScalars> last = worker.executor().remaining()) {
    log.judge(*last);
    log.write(*last);
  }
  if (directory && !stopped.empty()) directory->write_status({"stopped", last_step, stopped, ""});
  if (config.device.kind != DeviceKind::emulated) {
    save_weights(worker, config.run.dir + "/model.safetensors");
    info("weights: {}/model.safetensors", config.run.dir);
  }
  if (config.trace.steps > 0) {
    write_trace(worker, config.run.dir + "/trace.json");
    info("trace of the last steps: {}/trace.json (ui.perfetto.dev opens it)", config.run.dir);
  }
  report.print_table(run.is_rank_0(), model_operations(config, worker.plan().parameters));
  if (!stopped.empty()) {
    info("{}; the weights are saved, but no checkpoint to go on from: a requeued job begins again", stopped);
    if (directory) directory->forget_stop();
    return static_cast<int>(Exit::stopped);
  }
  if (directory) directory->write_status({"done", last_step, "", ""});
  return 0;
}

}  // namespace mindpipe
