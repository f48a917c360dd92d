#include "runtime/forward_stream.h"

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

ForwardStream::ForwardStream(Executor& executor, Stage& stage, GradientUpdates& updates, const RunPlan& plan,
                             Agreement& agreement, Waiting& waiting, Memory* pinned)
    : executor_(executor),
      stage_(stage),
      updates_(updates),
      plan_(plan.evaluation),
      layout_(stage.layout()),
      agreement_(agreement),
      waiting_(waiting),
      words_(stage.context().backend, layout_),
      script_(executor.make_growing_script(forwards_alone(plan.outline), 2, most_at_once)),
      answers_(stage.context().backend, waiting, pinned, layout_.local_data_shards() + Hits::places) {
  script_.feed = this;
  executor.actions().join(*this);
}

std::int64_t ForwardStream::in_flight(std::int64_t batches) const {
  return 2 * scores_in_flight(script_.outline, batches);
}

/// Every rank asks and hears in one order: a task is heard of when there is no room for one more, and as soon
/// as there is, one more is asked for.
void ForwardStream::run(const Tasks& tasks) {
  begin(tasks);
  for (;;) {
    ask();
    extend();
    if (forwards_ran_ < forwards_written_) run_one();
    else if (heard_ < asked_) hear();
    else if (over_) break;
  }
  executor_.finish(script_, {&input_, 1});
  tasks_ = nullptr;
  writer_.reset();
}

void ForwardStream::begin(const Tasks& tasks) {
  tasks_ = &tasks;
  writer_.emplace(script_.outline, plan_.network, plan_.rings[layout_.coord.pipeline],
                  layout_.coord.pipeline);
  most_ = tasks.lag > 0 ? std::min(tasks.lag, in_flight(tasks.batches)) : in_flight(tasks.batches);
  MP_CHECK(most_ >= scores_in_flight(script_.outline, tasks.batches),
           "a lag of {} tasks, where {} are under way at once", tasks.lag,
           scores_in_flight(script_.outline, tasks.batches));
  asked_ = told_ = heard_ = known_ = written_ = ran_ = first_passage_ = 0;
  forwards_written_ = forwards_ran_ = 0;
  loaded_ = -1;
  over_ = false;
  input_ = {};
  updates_.losses().begin_evaluation();
}

/// Asks for tasks, and hears of others, as far as nothing has to be waited for.
void ForwardStream::ask() {
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
    for (std::int64_t place = 0; place < tasks_->batches; ++place)
      passages_.push_back({static_cast<std::size_t>(asked_), task->batches[place], place});
    known_ += tasks_->batches;
    open_.push_back({std::move(*task), words_.none(told_batches())});
    ++asked_;
    tell();
  }
}

/// Writes the batch that is next and the one behind it, for which messages are received while it runs.
void ForwardStream::extend() {
  const std::int64_t wanted = std::min(known_, ran_ + 2);
  bool is_new = false;
  for (; written_ < wanted || (!writer_->is_whole() && written_ < known_); ++written_) {
    writer_->add(open_[passage(written_).task - static_cast<std::size_t>(heard_)].task.choice);
    is_new = true;
  }
  const bool last = over_ && written_ == known_;
  if (!is_new && !(last && !writer_->is_whole())) return;
  ListStretch stretch = writer_->write(last);
  if (stretch.actions.empty()) return;
  for (const Action& action : stretch.actions) forwards_written_ += is_pass(action) ? 1 : 0;
  for (Action& action : stretch.actions)  // all within this lane
    if (is_message(action)) action.peer += layout_.coord.supernet * layout_.grid.pipeline;
  Executor::extend(script_, std::move(stretch));
}

void ForwardStream::run_one() {
  if (tasks_->before) tasks_->before(passage(ran_).batch);
  ++ran_;
  forwards_ran_ = std::min(forwards_written_, forwards_ran_ + writer_->forwards_of_batch());
  executor_.run(script_, {&input_, 1}, static_cast<std::size_t>(forwards_written_ - forwards_ran_));
}

const StepInput& ForwardStream::bring(const Action& forward) {
  if (forward.subnet == loaded_) return input_;
  loaded_ = forward.subnet;
  if (is_left_out("forwards", "load")) return input_;
  const Passage& one = passage(forward.subnet);
  const std::vector<std::uint8_t>& choice = open_[one.task - static_cast<std::size_t>(heard_)].task.choice;
  input_ = tasks_->load(one.batch);
  input_.choice = choice.empty() ? input_.choice : choice.data();
  input_.mode = one.place < tasks_->calibrations ? Tape::Mode::calibrate : Tape::Mode::evaluate;
  if (tasks_->calibrations > 0)
    input_.calibrated = std::min(one.place, tasks_->calibrations) * layout_.micro_batches();
  return input_;
}

/// The last forward of a batch was put into the compute queue.
void ForwardStream::found(const Action&, std::int64_t batch, std::int64_t targets,
                          std::span<const Tensor> losses) {
  if (speaks() && input_.mode == Tape::Mode::evaluate) {
    const Tensor& found = updates_.losses().evaluated(losses.front());
    answers_.ask({&found, 1}, [this, number = batch, targets](std::span<const double> numbers) {
      Open& open = open_[passage(number).task - static_cast<std::size_t>(heard_)];
      words_.add(open.found, open.batches_found++, numbers, targets);
    });
  }
  if (!is_left_out("forwards", "clear")) updates_.losses().begin_evaluation();
}

/// Tells the others what is known here of tasks, one after the other; who does not speak says so at once.
void ForwardStream::tell() {
  if (tasks_ == nullptr) return;
  agreement_.progress();
  answers_.progress();
  for (; told_ < asked_; ++told_) {
    Open& open = open_[static_cast<std::size_t>(told_ - heard_)];
    if (speaks() && open.batches_found < told_batches()) return;
    if (speaks()) words_.end(open.found);
    open.found[0] = tasks_->wish && tasks_->wish() ? 1 : 0;
    agreement_.ask(open.found);
  }
}

void ForwardStream::hear() {
  const auto describe = [&] { return fmt::format("what is found of batch {}", passages_.front().batch + 1); };
  // A device that is behind has to come to the end of the task here first.
  waiting_.until([&] { return tell(), told_ > heard_; }, describe);
  const Agreement::Numbers found = agreement_.answer(describe);
  const std::vector<Evaluation> of_batches = words_.evaluations(found);
  first_passage_ += tasks_->batches;
  passages_.erase(passages_.begin(), passages_.begin() + tasks_->batches);
  open_.pop_front();
  ++heard_;
  if (tasks_->hear) tasks_->hear(of_batches);
  if (found[0] != 0) over_ = true;
}

}  // namespace mindpipe
