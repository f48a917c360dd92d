#include "runtime/evaluator.h"

#include <numeric>
#include <utility>

#include "config/config.h"
#include "supernet/sampler.h"

namespace mindpipe {

Evaluator::Evaluator(const Config& config, const RunPlan& plan, Stage& stage, Executor& executor,
                     BatchInputs& inputs, ForwardFeed& forwards, StepFeed* steps)
    : config_(config),
      plan_(plan),
      stage_(stage),
      executor_(executor),
      inputs_(inputs),
      forwards_(forwards),
      steps_(steps),
      calibrations_(calibrations_of(config, stage.layout().grid.data)) {
  if (row_of(config.model.kind).trains_subnets) evaluated_ = subnets_to_evaluate(config);
}

void Evaluator::run(const ForwardFeed::Tasks& tasks) {
  if (steps_ != nullptr) executor_.recorder(steps_->script());
  executor_.actions().settle();
  forwards_.run(tasks);
}

StepInput& Evaluator::hold(Corpus& corpus, std::int64_t batch, std::int64_t end) {
  if (batch < end) return inputs_.hold(corpus, batch);
  if (!calibration_) calibration_.emplace(config_.data, Subset::train, plan_.fields, config_.seed);
  const int data = stage_.layout().grid.data;
  return inputs_.hold(*calibration_, batch, (batch - end) / data, static_cast<int>((batch - end) % data));
}

/// Networks that are calibrated take all batches one after the other, others take turns with each batch.
Evaluation Evaluator::evaluate(Corpus& corpus, std::int64_t batches, const Before& before) {
  Evaluation all;
  if (calibrations_ > 0 && !evaluated_.empty()) {
    std::size_t next = 0;
    score(corpus, batches,
          {.next = [&]() -> std::optional<Subnet> {
             return next < evaluated_.size() ? std::optional(evaluated_[next++]) : std::nullopt;
           },
           .hear =
               [&](const std::vector<Evaluation>& of_batches) {
                 for (const Evaluation& of_batch : of_batches) all.add(of_batch);
               }},
          before);
    return all;
  }
  inputs_.forget();
  const auto networks = std::max<std::int64_t>(1, std::ssize(evaluated_));
  std::int64_t next = 0;
  run({.next = [&]() -> std::optional<ForwardTask> {
         const std::int64_t batch = next / networks, network = next % networks;
         if (batch == batches) return std::nullopt;
         ++next;
         if (evaluated_.empty()) return ForwardTask{.batches = {batch}};
         return ForwardTask{evaluated_[static_cast<std::size_t>(network)].choice, {batch}};
       },
       .load = [&](std::int64_t batch) -> StepInput& { return inputs_.hold(corpus, batch); },
       .hear = [&](const std::vector<Evaluation>& found) { all.add(found.front()); },
       .before = before});
  return all;
}

Evaluation Evaluator::evaluate(const StepInput& input) {
  Evaluation found;
  bool is_asked = false;
  run({.next = [&]() -> std::optional<ForwardTask> {
         if (std::exchange(is_asked, true)) return std::nullopt;
         return ForwardTask{.batches = {0}};
       },
       .load = [&](std::int64_t) -> const StepInput& { return input; },
       .hear = [&](const std::vector<Evaluation>& heard) { found = heard.front(); }});
  return found;
}

void Evaluator::score(Corpus& corpus, std::int64_t batches, const ScoreStream& stream, const Before& before) {
  inputs_.forget();
  std::vector<std::int64_t> all(static_cast<std::size_t>(calibrations_ + batches));
  std::iota(all.begin(), all.begin() + calibrations_, batches);
  std::iota(all.begin() + calibrations_, all.end(), 0);
  run({.next = [&]() -> std::optional<ForwardTask> {
         std::optional<Subnet> network = stream.next();
         if (!network) return std::nullopt;
         return ForwardTask{std::move(network->choice), all};
       },
       .lag = stream.lag,
       .batches = std::ssize(all),
       .calibrations = calibrations_,
       .load = [&](std::int64_t batch) -> StepInput& { return hold(corpus, batch, batches); },
       .hear = stream.hear,
       .wish = stream.wish,
       .before = before});
}

void Evaluator::inspect(std::function<void(int, const Boundary&)> look) {
  stage_.after_block = std::move(look);
  StepInput input = inputs_.loaded();
  input.calibrated = calibrations_ * stage_.layout().micro_batches();  // as the last evaluation has left it
  if (evaluated_.empty()) evaluate(input);
  for (const Subnet& network : evaluated_) {
    if (calibrations_ > 0 && &network != &evaluated_.back()) continue;
    input.choice = network.choice.data();
    evaluate(input);
  }
  stage_.after_block = nullptr;
}

}  // namespace mindpipe
