#include "runtime/subnet_trainer.h"

namespace mindpipe {
namespace {

/// The most numbers that are asked of the device at once.
std::int64_t most_numbers(const SubnetRooms& rooms) {
  return Decision::places * std::max<std::int64_t>(1, rooms.most_tensors) + 1;
}

}  // namespace

SubnetTrainer::SubnetTrainer(Executor& executor, const RankState& state, const Config& config,
                             const RunPlan& plan, const std::vector<Field>& fields, Feed feed,
                             SubnetWires wires)
    : executor_(executor),
      state_(state),
      plan_(plan),
      memory_(state.stage.context().backend.memory()),
      wires_(wires),
      rank_(state.stage.layout().program_rank()),
      window_(config.supernet.window),
      all_subnets_(config.train.steps),
      clip_(config.train.clip),
      answers_(state.stage.context().backend, wires.waiting, wires.pinned,
               most_numbers(plan.subnets->rooms[state.stage.layout().coord.pipeline])),
      reports_(plan.outline, state.stage.layout(), wires.reports, wires.waiting, window_, all_subnets_),
      script_(executor.make_growing_script(plan.outline)),
      pass_times_(plan.outline.lanes),
      load_(std::move(feed.load)),
      count_(std::move(feed.count)),
      inputs_(plan.subnets->rooms[state.stage.layout().coord.pipeline].inputs) {
  Stage& stage = state.stage;
  const Layout& layout = stage.layout();
  script_.feed = this;
  script_.kept = KeptActions(config.trace.steps, window_);
  inputs_arena_ = Arena(memory_, MemoryClass::boundary,
                        inputs_.size() * static_cast<std::size_t>(input_bytes(fields, layout)));
  for (StepInput& input : inputs_)
    for (const Field& field : fields)
      input.fields.set(field.name,
                       inputs_arena_.take(field.of(layout.micro_batches(), layout.samples), field.type));
  for (const int unit : stage.local_units())
    if (tells_of(unit)) ++told_units_;
  executor.actions().join(*this);
}

SubnetTrainer::~SubnetTrainer() { executor_.actions().leave(*this); }

/// What several stages share and update alike is told by the first of them.
bool SubnetTrainer::tells_of(int unit) const {
  const Stage& stage = state_.stage;
  return stage.model().is_shared(unit) && stage.model().units()[unit]->flat_count() > 0 &&
         stage.layout().coord.supernet == 0 && stage.has_block(stage.model().blocks_of(unit).front());
}

void SubnetTrainer::progress() {
  answers_.progress();
  reports_.progress();
  wires_.agreement.progress();
}

void SubnetTrainer::begin(std::unique_ptr<Sampler> stream, std::int64_t first) {
  const bool draws = stream != nullptr;
  planning_.reset();
  planning_ = std::make_unique<PlanningThread>(
      std::make_unique<Stretches>(plan_.outline, plan_.evaluation.network, plan_.subnets->paper.rules,
                                  std::vector<int>{rank_}, first),
      std::move(stream));
  state_.residency.begin(first);
  state_.windows->begin(first);
  reports_.begin(first);
  subnets_.clear();
  known_ = planned_ = first;
  if (!draws) return;
  plan_first();
  wires_.waiting.until([&] { return planning_->is_ready() || planned_ == known_; },
                       [] { return std::string("the first plan"); });
}

/// At a cut nobody knows yet where the next one will be, except that it is no nearer than a window's end.
void SubnetTrainer::plan_first() {
  const std::int64_t count = std::min({window_, longest_stretch, all_subnets_ - planned_});
  if (count <= 0) return;
  planning_->ask(count, false);
  planned_ += count;
}

void SubnetTrainer::plan_next(std::int64_t goal) {
  const std::int64_t count = std::min(longest_stretch, goal - planned_);
  planned_ += count;
  planning_->ask(count, planned_ == goal);
}

PlannedStretch SubnetTrainer::take_plan() {
  const std::int64_t start = now_ns();
  wires_.waiting.until([&] { return planning_->is_ready(); },
                       [&] { return fmt::format("the plan of subnets from {} on", known_); });
  const std::int64_t waited = now_ns() - start;
  script_.waits.plan += waited;
  script_.spent.steps += waited;
  return planning_->take();
}

/// All that was planned so far goes with it, for the ranks to compare.
void SubnetTrainer::ask(bool wish) { wires_.agreement.ask({wish ? 1U : 0U, hash_, ~hash_}); }

/// What the ranks have asked for. At a cut they may part, so it is there that different plans are an error.
SubnetTrainer::Wishes SubnetTrainer::answer() {
  const std::int64_t start = now_ns();
  const Agreement::Numbers most_of_all =
      wires_.agreement.answer([] { return std::string("all ranks to say whether they wish a cut"); });
  const std::int64_t waited = now_ns() - start;
  script_.waits.input += waited;
  script_.spent.steps += waited;
  return {most_of_all[0] != 0, most_of_all[1] == ~most_of_all[2]};
}

const StepInput& SubnetTrainer::bring(const Action& forward) {
  const std::int64_t id = forward.subnet;
  const Subnet& subnet = subnets_[static_cast<std::size_t>(id - subnets_.front().id)];
  StepInput& input = inputs_[static_cast<std::size_t>(id) % inputs_.size()];
  input.step = id;
  input.choice = subnet.choice.data();
  reports_.start(id);
  load_(subnet, input);
  return input;
}

void SubnetTrainer::found(const Action& by, std::int64_t subnet, std::int64_t valid,
                          std::span<const Tensor> numbers) {
  if (names_unit(by) && !tells_of(by.unit)) return;
  const bool has_loss = !names_unit(by) && state_.stage.has_head();
  answers_.ask(numbers,
               [this, by, result = SubnetResult{.subnet = subnet, .has_loss = has_loss, .valid = valid}](
                   std::span<const double> answers) { hear(by, result, answers); });
}

/// What all subnets share is told with a window's last one, once its last unit is updated.
void SubnetTrainer::hear(const Action& by, SubnetResult result, std::span<const double> numbers) {
  if (result.has_loss) {
    result.loss = numbers.back();
    numbers = numbers.first(numbers.size() - 1);
  }
  SubnetResult& counts = names_unit(by) ? of_window_ : result;
  for (; !numbers.empty(); numbers = numbers.subspan(Decision::places)) {
    ++counts.units;
    counts.skipped += numbers[Decision::skipped] != 0 ? 1 : 0;
    counts.clipped += clip_ > 0 && numbers[Decision::gradient_norm] > clip_ ? 1 : 0;
  }
  if (names_unit(by)) {
    if (of_window_.units < told_units_) return;
    of_window_.subnet = result.subnet;
    result = std::exchange(of_window_, {});
  }
  if (on_result_) on_result_(result);
  reports_.add(result);
}

void SubnetTrainer::came(std::int64_t subnet, int unit, std::int64_t due, const Tensor& version) {
  answers_.ask({&version, 1}, [this, subnet, unit, due](std::span<const double> found) {
    state_.residency.require_due(subnet, unit, static_cast<std::int64_t>(found[0]), due);
  });
}

/// Keeps the times of what has ended and is about to be dropped from the list, or of all at a cut.
void SubnetTrainer::keep() {
  KeptActions& kept = script_.kept;
  const std::int64_t ended = script_.dropped + static_cast<std::int64_t>(script_.cursors.ended_for_good());
  for (; kept_ < ended; ++kept_) {
    const auto index = static_cast<std::size_t>(kept_ - script_.dropped);
    const Action& action = script_.list[index];
    const Recorder::Times& times = script_.recorder.of_list(index);
    pass_times_.add(action, times);
    if (!kept.keeps()) continue;
    kept.add(action, times, names_unit(action) && script_.outline.units[action.unit].shared);
  }
  if (kept.keeps()) kept.forget(known_);
}

std::vector<KeptAction> SubnetTrainer::traced() { return script_.kept.last(known_); }

void SubnetTrainer::run(PlannedStretch stretch) {
  for (Subnet& subnet : stretch.subnets) {
    state_.residency.readers().know(subnet);
    subnets_.push_back(std::move(subnet));
  }
  reports_.expect(stretch.end);
  keep();
  Executor::extend(script_, std::move(stretch.list));
  if (stretch.last) executor_.finish(script_, inputs_);
  else executor_.run(script_, inputs_);
  const Recorder& recorder = script_.recorder;
  script_.kept.add_sums(recorder.sums(recorder.held() - 1));
  while (!subnets_.empty() && subnets_.front().id < stretch.ended) subnets_.pop_front();
  state_.residency.readers().forget(stretch.ended);
  if (!stretch.last) return;
  keep();
  for (const Residency::Arrival& one : state_.residency.take_arrivals())
    came(one.reader, one.unit, one.due, one.version);
  answers_.finish();
  reports_.finish();
  state_.residency.values().bind_newest();
}

/// The wish that ranks have before a stretch is asked about while that runs, and heard before the next, which
/// is planned by then: so the cut comes behind that one. Nothing is asked that is not answered before a plan
/// is taken, which may throw.
std::int64_t SubnetTrainer::train_to(std::int64_t cut) {
  MP_CHECK(cut % window_ == 0 || cut == all_subnets_, "a cut before subnet {}, in the middle of a window",
           cut);
  if (known_ >= cut) return known_;
  const Memory::Closed closed(memory_);
  for (bool is_over = false, is_asked = false; !is_over; is_asked = !is_over) {
    if (is_asked) {
      const Wishes wishes = answer();
      if (wishes.cut || !wishes.same_plans) cut = std::min(cut, (planned_ + window_ - 1) / window_ * window_);
    }
    PlannedStretch stretch = take_plan();
    const std::int64_t first = std::exchange(known_, stretch.end);
    is_over = stretch.last;
    hash_ = stretch.hash;
    if (!is_over) {
      ask(wish_ && wish_());
      plan_next(cut);
    }
    if (on_stretch_) on_stretch_(first, known_);
    run(std::move(stretch));
  }
  ask(false);
  MP_CHECK(answer().same_plans, "the ranks have different plans of the subnets before the cut at {}", known_);
  plan_first();
  return known_;
}

void SubnetTrainer::train(std::vector<Subnet> more, bool last) {
  if (!planning_) begin();
  planning_->ask(std::move(more), last);
  PlannedStretch stretch = take_plan();
  known_ = planned_ = stretch.end;
  run(std::move(stretch));
}

}  // namespace mindpipe
