#include "runtime/subnet_feed.h"

#include "config/sections/run.h"
#include "config/sections/search.h"
#include "config/sections/train.h"
#include "program/lists/stretches.h"

namespace mindpipe {

SubnetFeed::SubnetFeed(Executor& executor, const RankState& state, const SupernetConfig& supernet,
                       const TrainConfig& train, const TraceConfig& trace, const RunPlan& plan,
                       LateAnswers& answers, Wiring& wiring)
    : executor_(executor),
      state_(state),
      plan_(plan),
      agreement_(*wiring.agreement),
      waiting_(wiring.waiting),
      window_(supernet.window),
      all_subnets_(train.steps),
      clip_(train.clip),
      answers_(answers),
      reports_(plan.outline, wiring, window_, all_subnets_,
               [this](const SubnetScalars& scalars) { calls_->hear(scalars); }),
      script_(executor.make_open_script(plan.outline, *this)),
      kept_(trace.steps, window_, plan.outline.lanes),
      inputs_(plan.subnets->rooms[wiring.layout.coord.pipeline].inputs) {
  const Layout& layout = wiring.layout;
  const std::vector<Field> fields = state.stage.fields();
  inputs_arena_ = Arena(state.stage.context().backend.memory(), MemoryClass::boundary,
                        inputs_.size() * static_cast<std::size_t>(input_bytes(fields, layout)));
  for (StepInput& input : inputs_)
    for (const Field& field : fields)
      input.fields.set(field.name,
                       inputs_arena_.take(field.of(layout.micro_batches(), layout.samples), field.type));
  executor.actions().join(*this);
}

SubnetFeed::~SubnetFeed() { executor_.actions().leave(*this); }

void SubnetFeed::begin(std::unique_ptr<Sampler> stream, std::int64_t first) {
  const bool draws = stream != nullptr;
  planning_.reset();
  planning_ = std::make_unique<PlanningThread>(
      std::make_unique<Stretches>(plan_.outline, plan_.evaluation.network, plan_.subnets->paper.rules,
                                  std::vector<int>{state_.stage.layout().program_rank()}, first),
      std::move(stream));
  state_.residency.begin(first);
  state_.windows->begin(first);
  reports_.begin(first);
  subnets_.clear();
  known_ = planned_ = first;
  if (!draws) return;
  plan(std::min(planned_ + window_, all_subnets_), false);
  waiting_.until([&] { return planning_->is_ready() || planned_ == known_; },
                 [] { return std::string("the first plan"); });
}

/// At a drain nobody knows yet where the next one will be, except that it is no nearer than a window's end.
void SubnetFeed::plan(std::int64_t goal, bool to_drain) {
  const std::int64_t count = std::min(longest_stretch, goal - planned_);
  if (count <= 0 && !to_drain) return;
  planned_ += count;
  planning_->ask(count, to_drain && planned_ == goal);
}

PlannedStretch SubnetFeed::take_plan() {
  const std::int64_t start = now_ns();
  waiting_.until([&] { return planning_->is_ready(); },
                 [&] { return fmt::format("the plan of subnets from {} on", known_); });
  script_.waits.plan += now_ns() - start;
  return planning_->take();
}

/// The wishes of all ranks, and all that they have planned so far: the largest number, and the least one's
/// complement.
Agreement::Numbers SubnetFeed::answer() {
  const std::int64_t start = now_ns();
  const Agreement::Numbers most_of_all =
      agreement_.answer([] { return std::string("all ranks to say whether they wish a drain"); });
  script_.waits.input += now_ns() - start;
  has_asked_ = false;
  return most_of_all;
}

std::int64_t SubnetFeed::train_to(std::int64_t drain) {
  MP_CHECK(drain % window_ == 0 || drain == all_subnets_,
           "a drain before subnet {}, in the middle of a window", drain);
  if (known_ >= drain) return known_;
  drain_ = drain;
  executor_.run(*this);
  agreement_.ask({0, hash_, ~hash_});
  const Agreement::Numbers all = answer();
  MP_CHECK(all[1] == ~all[2], "the ranks have different plans of the subnets before the drain at {}", known_);
  plan(std::min(planned_ + window_, all_subnets_), false);
  return known_;
}

void SubnetFeed::train(std::vector<Subnet> more, bool last) {
  if (!planning_) begin(nullptr, 0);
  planning_->ask(std::move(more), last);
  PlannedStretch stretch = take_plan();
  known_ = planned_ = stretch.end;
  extend(std::move(stretch));
  if (!last) return executor_.run(script_, inputs_);
  executor_.finish(script_, inputs_);
  drained();
}

/// The wish that ranks have before a stretch is asked about while that runs, and heard before the next, which
/// is planned by then: so the drain comes behind that one. At a drain ranks may part, so it is there that
/// different plans are an error. Nothing is asked that is not answered before a plan is taken, which may
/// throw.
Turn SubnetFeed::next() {
  if (has_asked_)
    if (const Agreement::Numbers all = answer(); all[0] != 0 || all[1] != ~all[2])
      drain_ = std::min(drain_, (planned_ + window_ - 1) / window_ * window_);
  PlannedStretch stretch = take_plan();
  const std::int64_t first = std::exchange(known_, stretch.end);
  hash_ = stretch.hash;
  if (!stretch.last) {
    agreement_.ask({calls_->wishes_to_drain() ? 1U : 0U, hash_, ~hash_});
    has_asked_ = true;
    plan(drain_, true);
  }
  calls_->admits(first, known_);
  return extend(std::move(stretch));
}

Turn SubnetFeed::extend(PlannedStretch stretch) {
  while (!subnets_.empty() && subnets_.front().id < ended_) subnets_.pop_front();
  state_.residency.readers().forget(ended_);
  ended_ = stretch.ended;
  for (Subnet& subnet : stretch.subnets) {
    state_.residency.readers().know(subnet);
    subnets_.push_back(std::move(subnet));
  }
  reports_.expect(stretch.end);
  keep_times();
  Executor::extend(script_, std::move(stretch.list));
  return {.script = script_, .inputs = inputs_, .to_drain = stretch.last};
}

void SubnetFeed::keep_times() {
  kept_.hear(script_.list, script_.dropped, script_.cursors.ended_for_good(), script_.recorder, known_);
}

void SubnetFeed::drained() {
  keep_times();
  for (const UnitArrivals::Arrival& one : state_.residency.arrivals().take()) came(one);
  answers_.settle();
  state_.residency.readers().forget(ended_);
  reports_.finish();
  state_.residency.values().bind_newest();
}

void SubnetFeed::progress() {
  answers_.progress();
  reports_.progress();
  agreement_.progress();
}

const StepInput& SubnetFeed::bring(const Action& forward) {
  const Subnet& subnet = subnets_[static_cast<std::size_t>(forward.owner.number - subnets_.front().id)];
  StepInput& input = inputs_[static_cast<std::size_t>(subnet.id) % inputs_.size()];
  input.step = subnet.id;
  input.choice = subnet.choice.data();
  reports_.start(subnet.id);
  calls_->load(subnet, input);
  return input;
}

void SubnetFeed::found(const Action& by, std::int64_t subnet, std::int64_t valid,
                       std::span<const Tensor> numbers) {
  if (names_unit(by) && !reports_.counts(by.unit)) return;
  const bool has_losses = state_.stage.has_head() && !names_unit(by);
  const auto units = numbers.size() - (has_losses ? 1 : 0);
  answers_.ask(numbers, [this, subnet, valid, has_losses, units](std::span<const double> known) {
    SubnetScalars part{.subnet = subnet, .units = static_cast<std::int64_t>(units)};
    for (std::size_t k = 0; k < units; ++k) {
      const double* decision = &known[k * Decision::places];
      part.skipped += decision[Decision::skipped] != 0 ? 1 : 0;
      part.clipped += clip_ > 0 && decision[Decision::gradient_norm] > clip_ ? 1 : 0;
    }
    if (has_losses) part.valid = valid;
    if (has_losses) part.losses = known.back();
    calls_->hear_part(part);
    reports_.add(part);
  });
}

}  // namespace mindpipe
