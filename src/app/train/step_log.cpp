#include "app/train/step_log.h"

#include <cmath>
#include <utility>

#include "app/run/resume.h"
#include "app/run/run_history.h"
#include "config/config.h"
#include "core/log.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

/// Why blocks move, and what that should bring; then what it has brought.
void add_balance(JsonLine& line, const Balancer::News& news) {
  line.add("balance", news.sentence);
  if (news.stays) return;
  line.add("balanced_from", news.first_step)
      .add("balanced_by", news.last_step)
      .add("planned_seconds_before", news.planned_before)
      .add("planned_seconds", news.planned)
      .add("measured_seconds_before", news.measured_before);
  if (news.is_measured) line.add("measured_seconds", news.measured);
}

}  // namespace

StepLog::StepLog(Run& run, RunDirectory* directory, EndReport& report, const RunProgress& begun,
                 RunEnergy* energy)
    : run_(run),
      directory_(directory),
      report_(report),
      energy_(energy),
      progress_(begun.step, run.config().train.steps, run.config().run.log_every),
      counted_(run.worker().plan().counted),
      skipped_(begun.step - begun.applied) {}

void StepLog::begin() {
  newest_end_ = run_.seconds();
  remember_noise();
}

/// A run that goes on knows what its steps before have measured.
void StepLog::remember_noise() {
  if (directory_ == nullptr || run_.config().train.noise_every == 0) return;
  read_metrics(directory_->path(), [&](const JsonMembers& line) {
    const auto signal = line.numbers.find("gradient_signal"), noise = line.numbers.find("gradient_noise");
    if (signal != line.numbers.end() && noise != line.numbers.end())
      noise_.add({signal->second, noise->second});
  });
  report_.set_noise_scale(noise_.estimate());
}

void StepLog::add_noise(const GradientNoise& measured, JsonLine& line) {
  noise_.add(measured);
  line.add("gradient_signal", measured.signal).add("gradient_noise", measured.noise);
  const auto estimate = noise_.estimate();
  report_.set_noise_scale(estimate);
  if (estimate) line.add("noise_scale", estimate->samples).add("noise_scale_error", estimate->error);
}

/// Two lists, with a number for each layer, and the layers' names.
void StepLog::add_norms(double gradient_norm, JsonLine& line) {
  const std::vector<LayerNorms> layers =
      norms_by_layer(run_.worker().stage().model(), measured_.squares, gradient_norm);
  std::vector<double> gradients, weights;
  std::string names;
  for (const LayerNorms& layer : layers) {
    gradients.push_back(layer.gradient);
    weights.push_back(layer.weights);
    names += (names.empty() ? "" : " ") + layer.layer;
  }
  line.add("layers", names).add("gradient_norms", gradients).add("weight_norms", weights);
}

void StepLog::begun(int step, double seconds) { begun_.push_back({step, seconds, run_.seconds() - seconds}); }

void StepLog::add(const StepScalars& scalars) {
  write_newest();
  MP_CHECK(!begun_.empty() && begun_.front().step == scalars.step,
           "the scalars of step {} are told out of order", scalars.step + 1);
  const Begun begun = begun_.front();
  begun_.pop_front();
  if (!scalars.applied) {
    ++skipped_;
    warning("step {} changed nothing: {}", begun.step + 1,
            scalars.valid == 0            ? "no target counts"
            : std::isfinite(scalars.loss) ? "a gradient is not finite"
                                          : "the loss is " + number_text(scalars.loss));
  }
  report_.add(begun.seconds, scalars.loss);
  const Config& config = run_.config();
  const double speed = static_cast<double>(config.train.batch * counted_.of_sample) / begun.seconds;
  JsonLine line;
  line.add("step", begun.step + 1)
      .add("loss", scalars.loss)
      .add(fmt::format("{}s_per_second", counted_.what), speed)
      .add("seconds", begun.seconds)
      .add("rate", rate_at(config.optimizer.rate, begun.step, config.train.steps))
      .add("gradient_norm", scalars.gradient_norm)
      .add("tokens", scalars.valid)
      .add("skipped", skipped_);
  if (begun.step == 0) line.add("seconds_to_first_step", begun.before);
  add_names(line);
  if (scalars.noise) add_noise(*scalars.noise, line);
  if (const auto moved = cuts_behind_.extract(begun.step)) line.add("cuts", moved.mapped());
  if (const auto balanced = balanced_.extract(begun.step)) add_balance(line, balanced.mapped());
  if (measured_.step == begun.step) add_norms(scalars.gradient_norm, line);
  keep(begun.step + 1, std::move(line),
       fmt::format("loss {:.4f} | {} {}s/s", scalars.loss, human_count(speed), counted_.what));
}

/// The first line of each start says what its steps are computed with.
void StepLog::add_names(JsonLine& line) {
  if (std::exchange(is_named_, true)) return;
  line.add("arithmetic", run_.arithmetic().name())
      .add("course", name_of_course(lasting_settings(run_.config())));
}

void StepLog::go_back_to(const RunProgress& progress) {
  is_named_ = false;
  begun_.clear();
  cuts_behind_.clear();
  balanced_.clear();
  newest_.reset();
  skipped_ = progress.step - progress.applied;
  progress_.go_back_to(progress.step);
  noise_ = {};
  remember_noise();
}

void StepLog::add(const SubnetScalars& scalars) {
  write_newest();
  const double end = run_.seconds(), seconds = end - newest_end_;
  newest_end_ = end;
  report_.add(seconds, scalars.loss());
  report_.add_units(scalars);
  if (scalars.skipped > 0)
    warning("subnet {}: {} of its {} units changed nothing: {}", scalars.subnet, scalars.skipped,
            scalars.units, scalars.valid == 0 ? "no target counts" : "their gradients are not finite");
  const Config& config = run_.config();
  const std::vector<std::uint8_t> choice = stream_ ? stream_->next().choice : std::vector<std::uint8_t>{};
  JsonLine line;
  line.add("step", scalars.subnet + 1)
      .add("subnet", scalars.subnet)
      .add("choice", std::vector<int>(choice.begin(), choice.end()))
      .add("loss", scalars.loss())
      .add("seconds", seconds)
      .add("seconds_in_flight", scalars.seconds)
      .add("rate", rate_at(config.optimizer.rate, scalars.subnet, config.train.steps))
      .add("tokens", scalars.valid)
      .add("units", scalars.units)
      .add("clipped", scalars.clipped)
      .add("skipped", scalars.skipped);
  add_names(line);
  if (report_.trained() == 1) line.add("seconds_to_first_subnet", end);
  const double each = report_.seconds_each(), loss = report_.mean_loss(),
               counted = static_cast<double>(config.train.batch * counted_.of_sample);
  keep(scalars.subnet + 1, std::move(line),
       fmt::format("mean loss {} | {} {}s/s",
                   std::isfinite(loss) ? fmt::format("{:.4f}", loss) : number_text(loss),
                   each > 0 ? human_count(counted / each) : "-", counted_.what));
}

void StepLog::keep(std::int64_t done, JsonLine line, std::string words) {
  if (!row_of(run_.config().device.kind).computes) line.add("emulated", true);
  if (energy_ != nullptr && directory_ != nullptr) energy_->add_to(line, done);
  newest_ = {done, std::move(line), std::move(words)};
}

void StepLog::write_newest(const std::optional<HeldOutEvaluation>& found) {
  if (!newest_) return;
  if (directory_ != nullptr) {
    const RunPlan& plan = run_.worker().plan();
    if (found) add_evaluation(newest_->line, found->all, plan);
    directory_->append_metrics(newest_->line);
    if (found)
      for (const auto& [name, evaluation] : found->several()) {
        JsonLine line;
        add_evaluation(line.add("step", newest_->done).add("source", name), evaluation, plan);
        directory_->append_metrics(line);
      }
    directory_->write_status({"running", newest_->done, "", ""});
  }
  progress_.update(newest_->done, newest_->words);
  newest_.reset();
}

}  // namespace mindpipe
