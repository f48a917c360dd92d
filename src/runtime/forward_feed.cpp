#include "runtime/forward_feed.h"

#include "comm/fault_points.h"

namespace mindpipe {
namespace {

Outline forwards_alone(Outline outline) {
  outline.training = false;
  return outline;
}

/// Actions that a device which carries messages itself is given at once.
constexpr std::size_t most_at_once = 256;

}  // namespace

ForwardFeed::ForwardFeed(Executor& executor, const RankState& state, const RunPlan& plan,
                         LateAnswers& answers, Wiring& wiring)
    : executor_(executor),
      speaks_(state.stage.has_head()),
      updates_(state.updates),
      plan_(plan.evaluation),
      layout_(wiring.layout),
      answers_(answers),
      agreement_(*wiring.agreement),
      waiting_(wiring.waiting),
      words_(state.stage.context().backend, layout_),
      script_(executor.make_open_script(forwards_alone(plan.outline), *this, most_at_once)) {
  executor.actions().join(*this);
}

void ForwardFeed::run(const Tasks& tasks) {
  const std::int64_t least = scores_in_flight(script_.outline, tasks.batches);
  most_ = tasks.lag > 0 ? std::min(tasks.lag, 2 * least) : 2 * least;
  MP_CHECK(most_ >= least, "a lag of {} tasks, where {} are under way at once", tasks.lag, least);
  tasks_ = &tasks;
  writer_.emplace(script_.outline, plan_.network, plan_.rings[layout_.coord.pipeline],
                  layout_.coord.pipeline);
  books_.emplace(ListCheck::of_forwards(script_.outline, layout_.program_rank()));
  asked_ = told_ = heard_ = written_ = ran_ = forwards_written_ = forwards_ran_ = 0;
  open_.clear();
  loaded_ = -1;
  over_ = false;
  input_ = {};
  updates_.losses().begin_evaluation();
  executor_.run(*this);
}

/// Every rank asks and hears in one order: a task is heard of when there is no room for one more, and as soon
/// as there is, one more is asked for.
Turn ForwardFeed::next() {
  for (;;) {
    ask();
    extend();
    if (forwards_ran_ < forwards_written_) return one_batch();
    if (heard_ < asked_) hear();
    else if (over_) return {.script = script_, .inputs = {&input_, 1}, .to_drain = true};
  }
}

/// Asks for tasks, and hears of others, as far as nothing has to be waited for.
void ForwardFeed::ask() {
  for (;;) {
    if (over_ || asked_ - heard_ == most_) {
      if (!agreement_.is_answered()) return;
      hear();
      continue;
    }
    std::optional<ForwardTask> task = tasks_->next();
    if (!task) {
      over_ = true;
      continue;
    }
    MP_CHECK(static_cast<std::int64_t>(task->batches.size()) == tasks_->batches,
             "a task of {} batches, not {}", task->batches.size(), tasks_->batches);
    open_.push_back({std::move(*task), words_.none(told_batches())});
    ++asked_;
    tell();
  }
}

/// Writes the batch that is next and the one behind it, for which messages are received while it runs.
void ForwardFeed::extend() {
  const std::int64_t wanted = std::min(known(), ran_ + 2);
  bool is_new = false;
  for (; written_ < wanted || (!writer_->is_whole() && written_ < known()); ++written_) {
    writer_->add(open_of(written_).task.choice);
    books_->expect(1);
    is_new = true;
  }
  const bool last = over_ && written_ == known();
  if (!is_new && !(last && !writer_->is_whole())) return;
  ListStretch stretch = writer_->write(last);
  for (Action& action : stretch.actions)  // all within this lane
    if (is_message(action)) action.peer += layout_.coord.supernet * layout_.grid.pipeline;
  CheckedStretch checked = books_->prove(std::move(stretch), last);
  if (checked.actions().empty()) return;
  for (const Action& action : checked.actions()) forwards_written_ += is_pass(action) ? 1 : 0;
  Executor::extend(script_, std::move(checked));
}

Turn ForwardFeed::one_batch() {
  if (tasks_->before) tasks_->before(batch_of(ran_));
  ++ran_;
  forwards_ran_ = std::min(forwards_written_, forwards_ran_ + writer_->forwards_of_batch());
  return {.script = script_,
          .inputs = {&input_, 1},
          .left = static_cast<std::size_t>(forwards_written_ - forwards_ran_)};
}

const StepInput& ForwardFeed::bring(const Action& forward) {
  if (forward.owner.number == loaded_) return input_;
  loaded_ = forward.owner.number;
  if (is_left_out("forwards", "load")) return input_;
  const std::int64_t place = place_of(loaded_);
  const std::vector<std::uint8_t>& choice = open_of(loaded_).task.choice;
  input_ = tasks_->load(batch_of(loaded_));
  input_.choice = choice.empty() ? input_.choice : choice.data();
  input_.mode = place < tasks_->calibrations ? Tape::Mode::calibrate : Tape::Mode::evaluate;
  if (tasks_->calibrations > 0)
    input_.calibrated = std::min(place, tasks_->calibrations) * layout_.micro_batches();
  return input_;
}

/// The last forward of a batch was put into the compute queue.
void ForwardFeed::found(const Action&, std::int64_t batch, std::int64_t valid,
                        std::span<const Tensor> losses) {
  if (speaks_ && input_.mode == Tape::Mode::evaluate) {
    const Tensor& numbers = updates_.losses().evaluated(losses.front());
    answers_.ask({&numbers, 1}, [this, batch, valid](std::span<const double> known) {
      Open& open = open_of(batch);
      words_.add(open.found, open.batches_found++, known, valid);
    });
  }
  if (!is_left_out("forwards", "clear")) updates_.losses().begin_evaluation();
}

/// Tells the others what is known here of tasks, one after the other; who does not speak says so at once.
void ForwardFeed::tell() {
  agreement_.progress();
  if (tasks_ == nullptr) return;
  answers_.progress();
  for (; told_ < asked_; ++told_) {
    Open& open = open_[static_cast<std::size_t>(told_ - heard_)];
    if (speaks_ && open.batches_found < told_batches()) return;
    if (speaks_) words_.end(open.found);
    open.found[0] = tasks_->wish && tasks_->wish() ? 1 : 0;
    agreement_.ask(open.found);
  }
}

void ForwardFeed::hear() {
  const auto describe = [&] {
    return fmt::format("what is found of batch {}", open_.front().task.batches.front() + 1);
  };
  // A device that is behind has to come to the end of the task here first.
  waiting_.until([&] { return tell(), told_ > heard_; }, describe);
  const Agreement::Numbers found = agreement_.answer(describe);
  const std::vector<Evaluation> of_batches = words_.evaluations(found);
  open_.pop_front();
  ++heard_;
  if (tasks_->hear) tasks_->hear(of_batches);
  if (found[0] != 0) over_ = true;
}

}  // namespace mindpipe
