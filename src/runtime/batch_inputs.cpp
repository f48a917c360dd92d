#include "runtime/batch_inputs.h"

#include <algorithm>

#include "plan/run_plan.h"

namespace mindpipe {
namespace {

std::int64_t count_valid(const Tensor& targets) {
  const auto* first = targets.as<std::int32_t>();
  return std::count_if(first, first + targets.count(), [](std::int32_t target) { return target >= 0; });
}

}  // namespace

/// Room for what blocks here read of a batch's samples, and for that, and all targets, on its way there.
BatchInputs::BatchInputs(const Stage& stage, const std::vector<Field>& fields, int held, bool all)
    : backend_(stage.context().backend), layout_(stage.layout()), held_(static_cast<std::size_t>(held)) {
  const std::vector<Field> read = all ? fields : stage.fields();
  is_read_ = !read.empty() || stage.has_head();
  arena_ = Arena(backend_.memory(), MemoryClass::boundary,
                 static_cast<std::size_t>(held * input_bytes(read, layout_)));
  for (Held& one : held_)
    for (const Field& field : read)
      one.input.fields.set(field.name,
                           arena_.take(field.of(layout_.micro_batches(), layout_.samples), field.type));
  const std::int64_t samples = std::int64_t{layout_.micro_batches()} * layout_.samples;
  for (const Field& field : fields) {
    if (!loaded().fields.find(field.name) && field.name != field::targets) continue;
    const Shape shape = field.of(samples);
    memory_.emplace_back(static_cast<std::size_t>(shape.count()) * bytes_of(field.type));
    drawn_.set(field.name, {memory_.back().data(), shape, field.type});
  }
}

void BatchInputs::bring(Corpus& corpus, std::int64_t first, int data, StepInput& input, std::uint64_t read) {
  Layout there = layout_;
  there.coord.data = data;
  corpus.batch(first + there.first_sample(0), drawn_);
  if (!input.fields.entries().empty()) {
    backend_.wait(Queue::copy_in, read);
    backend_.use_queue(Queue::copy_in);
    for (const FieldTensors::Entry& entry : input.fields.entries())
      backend_.upload(drawn_.at(entry.name).data, entry.tensor);
    backend_.use_queue(Queue::compute);
    backend_.wait(Queue::compute, backend_.record(Queue::copy_in));
  }
  input.valid = count_valid(drawn_.at(field::targets));
  ++brought_;
}

StepInput& BatchInputs::load(Corpus& corpus, std::int64_t first) {
  const std::uint64_t behind_step = now();
  if (held_[loaded_].name < 0) held_[loaded_].read = behind_step;
  loaded_ = held_.size() > 1 ? 1 - loaded_ : 0;
  Held& room = held_[loaded_];
  bring(corpus, first, layout_.coord.data, room.input, room.read.value_or(behind_step));
  room.read.reset();
  room.name = -1;
  return room.input;
}

StepInput& BatchInputs::hold(Corpus& corpus, std::int64_t name, std::int64_t batch, int data) {
  Held& held = held_[static_cast<std::size_t>(name) % held_.size()];
  if (held.name != name && is_read_) bring(corpus, batch * layout_.batch, data, held.input, now());
  held.name = name;
  held.read.reset();
  return held.input;
}

void BatchInputs::forget() {
  for (Held& held : held_) held.name = -1;
}

void BatchInputs::load_whole(Corpus& corpus, std::int64_t first, StepInput& input) {
  bring(corpus, first, layout_.coord.data, input, now());
  if (layout_.grid.data > 1) input.valid = count_whole(corpus, first);
}

std::int64_t BatchInputs::count_whole(Corpus& corpus, std::int64_t first) {
  Tensor targets = drawn_.at(field::targets);
  all_targets_.resize(static_cast<std::size_t>(targets.count() * layout_.grid.data));
  targets.data = all_targets_.data();
  targets.shape.extent[0] = layout_.batch;
  FieldTensors whole;
  whole.set(field::targets, targets);
  corpus.batch(first, whole);
  return count_valid(targets);
}

}  // namespace mindpipe
