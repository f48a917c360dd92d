#include "app/train/subnet_log.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/train/evaluation.h"
#include "app/train/report_end.h"
#include "core/log.h"
#include "core/text.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {
namespace {

constexpr std::size_t losses_of_a_mean = 64;

std::string text_of_loss(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : number_text(loss);
}

}  // namespace

SubnetLog::SubnetLog(Run& run, RunDirectory* directory, const RunProgress& begun)
    : run_(run),
      directory_(directory),
      progress_(begun.step, run.config().train.steps, run.config().run.log_every),
      newest_end_(run.seconds()) {
  if (directory != nullptr) stream_ = stream_of(run.config(), begun.step);
}

void SubnetLog::add(const SubnetScalars& scalars) {
  write_newest();
  newest_ = scalars;
  if (stream_) newest_subnet_ = stream_->next();
  ++subnets_;
  units_ += scalars.units;
  clipped_ += scalars.clipped;
  skipped_ += scalars.skipped;
  last_losses_.resize(losses_of_a_mean);
  last_losses_[static_cast<std::size_t>(subnets_ - 1) % losses_of_a_mean] = scalars.loss();
  const double end = run_.seconds();
  newest_seconds_ = end - newest_end_;
  newest_end_ = end;
  if (subnets_ == 1) first_end_ = end;
  if (!std::isfinite(scalars.loss()) && not_finite_ < 0) not_finite_ = scalars.subnet;
  if (scalars.skipped > 0)
    warning("subnet {}: {} of its {} units changed nothing: {}", scalars.subnet, scalars.skipped,
            scalars.units, scalars.valid == 0 ? "no target counts" : "their gradients are not finite");
}

void SubnetLog::write_newest(const std::optional<Evaluation>& evaluation) {
  if (!newest_) return;
  const SubnetScalars scalars = *newest_;
  newest_.reset();
  const Config& config = run_.config();
  const double tokens = static_cast<double>(config.train.batch * run_.worker().plan().counted.of_sample);
  if (directory_ != nullptr) {
    JsonLine line;
    line.add("step", scalars.subnet + 1)
        .add("subnet", scalars.subnet)
        .add("choice", std::vector<int>(newest_subnet_.choice.begin(), newest_subnet_.choice.end()))
        .add("loss", scalars.loss())
        .add("seconds", newest_seconds_)
        .add("seconds_in_flight", scalars.seconds)
        .add("rate", rate_at(config.optimizer.rate, scalars.subnet, config.train.steps))
        .add("tokens", scalars.valid)
        .add("units", scalars.units)
        .add("clipped", scalars.clipped)
        .add("skipped", scalars.skipped);
    if (subnets_ == 1) line.add("seconds_to_first_subnet", newest_end_);
    if (!row_of(config.device.kind).computes) line.add("emulated", true);
    if (evaluation) add_evaluation(line, *evaluation, run_.worker().plan());
    directory_->append_metrics(line);
    directory_->write_status({"running", scalars.subnet + 1, "", ""});
  }
  const double each = seconds_each();
  progress_.update(scalars.subnet + 1, fmt::format("mean loss {} | {} {}s/s", text_of_loss(mean_loss()),
                                                   each > 0 ? human_count(tokens / each) : "-",
                                                   run_.worker().plan().counted.what));
}

double SubnetLog::seconds_each() const {
  return subnets_ < 2 ? 0 : (newest_end_ - first_end_) / static_cast<double>(subnets_ - 1);
}

double SubnetLog::mean_loss() const {
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(subnets_), losses_of_a_mean);
  return count == 0
             ? 0
             : std::accumulate(last_losses_.begin(), last_losses_.begin() + static_cast<long>(count), 0.0) /
                   static_cast<double>(count);
}

}  // namespace mindpipe
