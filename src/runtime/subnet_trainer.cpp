#include "runtime/subnet_trainer.h"

namespace mindpipe {

SubnetTrainer::SubnetTrainer(Executor& executor, Stage& stage, GradientUpdates& updates, Groups groups,
                             const Config& config, const RunPlan& plan, const std::vector<Field>& fields,
                             Load load)
    : executor_(executor),
      actions_(stage, updates, groups, config, plan.subnets->rooms[stage.layout().coord.pipeline],
               executor.actions().scratch()),
      stretches_(plan.outline, plan.evaluation.network, plan.subnets->paper.rules,
                 {stage.layout().coord.pipeline}),
      script_(executor.make_growing_script(plan.outline)),
      load_(std::move(load)),
      inputs_(plan.subnets->rooms[stage.layout().coord.pipeline].inputs) {
  const Layout& layout = stage.layout();
  inputs_arena_ = Arena(stage.context().backend.memory(), MemoryClass::boundary,
                        inputs_.size() * static_cast<std::size_t>(input_bytes(fields, layout)));
  for (StepInput& input : inputs_)
    for (const Field& field : fields)
      input.fields.set(field.name,
                       inputs_arena_.take(field.of(layout.micro_batches(), layout.samples), field.type));
  actions_.on_load([this](std::int64_t subnet) { this->load(subnet); });
  executor.actions().train_subnets(&actions_);
}

void SubnetTrainer::load(std::int64_t id) {
  const Subnet& subnet = subnets_[static_cast<std::size_t>(id - subnets_.front().id)];
  StepInput& input = inputs_[static_cast<std::size_t>(id) % inputs_.size()];
  input.step = id;
  input.choice = subnet.choice.data();
  load_(subnet, input);
}

/// Keeps for the trace what has ended and is about to be dropped from the list, or all at a cut.
void SubnetTrainer::keep() {
  KeptActions& kept = actions_.kept();
  if (!kept.keeps()) return;
  const std::int64_t ended = script_.dropped + static_cast<std::int64_t>(script_.cursors.ended_for_good());
  for (; kept_ < ended; ++kept_) {
    const auto index = static_cast<std::size_t>(kept_ - script_.dropped);
    const Action& action = script_.list[index];
    kept.add(action, script_.recorder.of_list(index),
             names_unit(action) && script_.outline.units[action.unit].shared);
  }
  kept.forget(stretches_.planner().known());
}

std::vector<KeptAction> SubnetTrainer::traced() { return actions_.kept().last(stretches_.planner().known()); }

void SubnetTrainer::train(std::vector<Subnet> more, bool last) {
  while (!subnets_.empty() && subnets_.front().id < stretches_.planner().oldest()) subnets_.pop_front();
  auto lists = stretches_.next(more, last);
  for (Subnet& subnet : more) subnets_.push_back(std::move(subnet));
  keep();
  Executor::extend(script_, std::move(lists.front()));
  if (last) executor_.finish(script_, inputs_);
  else executor_.run(script_, inputs_);
  const Recorder& recorder = script_.recorder;
  actions_.kept().add_sums(recorder.sums(recorder.held() - 1));
  if (!last) return;
  keep();
  actions_.windows().bind_newest();
}

}  // namespace mindpipe
