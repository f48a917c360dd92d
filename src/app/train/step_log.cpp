#include "app/train/step_log.h"

#include <cmath>

#include "app/train/evaluation.h"
#include "core/log.h"
#include "core/text.h"
#include "runtime/diagnose.h"

namespace mindpipe {

StepLog::StepLog(Run& run, RunDirectory* directory, EndReport& report, const RunProgress& begun)
    : run_(run),
      directory_(directory),
      report_(report),
      progress_(begun.step, run.config().train.steps, run.config().run.log_every),
      counted_(run.worker().plan().counted),
      skipped_(begun.step - begun.applied) {}

void StepLog::add(int step, double seconds, double rate) {
  begun_.push_back({step, seconds, rate, run_.seconds() - seconds});
}

const StepLog::Begun& StepLog::of(const StepScalars& scalars) const {
  MP_CHECK(!begun_.empty() && begun_.front().step == scalars.step,
           "the scalars of step {} are told out of order", scalars.step + 1);
  return begun_.front();
}

void StepLog::judge(const StepScalars& scalars) {
  const Begun& begun = of(scalars);
  if (!std::isfinite(scalars.loss))
    fail(Exit::diverged, "step {}: the loss is {}; {}", begun.step + 1, number_text(scalars.loss),
         diagnose(run_.worker()));
  if (!scalars.applied) {
    ++skipped_;
    warning("step {} changed nothing: {}", begun.step + 1,
            scalars.valid == 0 ? "no target counts" : "a gradient is not finite");
  }
  report_.add_step(begun.seconds, scalars);
}

void StepLog::write(const StepScalars& scalars, const std::optional<Evaluation>& evaluation) {
  const Begun begun = of(scalars);
  begun_.pop_front();
  const bool emulated = !row_of(run_.config().device.kind).computes;
  const double rate = static_cast<double>(run_.config().train.batch * counted_.of_sample) / begun.seconds;
  if (directory_ != nullptr) {
    JsonLine line;
    line.add("step", begun.step + 1)
        .add("loss", scalars.loss)
        .add(fmt::format("{}s_per_second", counted_.what), rate)
        .add("seconds", begun.seconds)
        .add("rate", begun.rate);
    line.add("gradient_norm", scalars.gradient_norm).add("tokens", scalars.valid).add("skipped", skipped_);
    if (begun.step == 0) line.add("seconds_to_first_step", begun.before_first);
    if (emulated) line.add("emulated", true);
    if (evaluation) add_evaluation(line, *evaluation, run_.worker().plan());
    directory_->append_metrics(line);
    directory_->write_status({"running", begun.step + 1, "", ""});
  }
  progress_.update(begun.step + 1,
                   fmt::format("loss {:.4f} | {} {}s/s", scalars.loss, human_count(rate), counted_.what));
}

}  // namespace mindpipe
