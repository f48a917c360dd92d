#include "plan/passes_on_paper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "config/config.h"
#include "layers/embedding.h"

namespace mindpipe {
namespace {

// Counted, never allocated. What is counted stays far below, so that no sum of sizes leaves 64 bits.
constexpr std::size_t unlimited = std::size_t{1} << 60;
constexpr double most_bytes = 0x1p57, most_tokens = 0x1p30;

std::unique_ptr<WorkspaceOnPaper> workspace_of(const Config& config) {
  if (row_of(config.device.kind).memory == Memory::Kind::device)
    return make_gpu_workspace(attention_limit(config), device_on_paper(config));
  return make_cpu_workspace(threads_of(config.device), config.device.instructions);
}

}  // namespace

AttentionLimit attention_limit(const Config& config) {
  return {.most = static_cast<std::size_t>(config.device.attention_workspace),
          .in_pieces = config.device.attention_beyond == AttentionBeyond::pieces};
}

PassesOnPaper::PassesOnPaper(const Config& config, const Layout& layout)
    : schedule_(config.schedule.kind),
      layout_(layout),
      memory_(Memory::Kind::counted),
      backend_(
          make_pricing_backend(memory_, description_of(config), row_of(config.device.kind).wants_many_rows)),
      workspace_(workspace_of(config)),
      tensor_(*backend_, layout.tensor_shards, OnPaper{layout.grid.tensor, layout.coord.tensor}),
      passes_(config, layout, *backend_, memory_, tensor_) {
  backend_->tell(*workspace_);
  tensor_.on_tensor_sum([this](const TensorSum& sum) {
    ++sums_.calls;
    sums_.bytes += sum.bytes;
  });
}

void PassesOnPaper::allocate() {
  require_countable();
  for (auto& unit : model().units()) {
    unit->allocate_values(memory_);
    unit->gradients().allocate(memory_);
  }
  stage().allocate_statistics({{0, static_cast<int>(model().blocks().size())}});
  passes_.allocate({unlimited, unlimited, unlimited});
  for (const Model::Block& block : model().blocks())
    for (const Model::Block::Choice& part : block.choices)
      choice_.resize(std::max<std::size_t>(choice_.size(), part.place + 1), 0);
  if (!choice_.empty()) passes_.batch().choice = choice_.data();
}

/// Refuses what no machine will ever hold, before sizes are added up.
void PassesOnPaper::require_countable() const {
  const Model& m = passes_.model();
  double most_rows = 0, kept = 0;  // of a sample; what products give is about a number a row for each weight
  for (const Model::Block& block : m.blocks()) {
    const auto rows = static_cast<double>(block.behind[0]), width = static_cast<double>(block.behind[1]);
    std::int64_t weights = 0;
    for (int unit : block.units) weights += m.units()[unit]->parameters();
    most_rows = std::max(most_rows, rows);
    kept += rows * 4 * (10 * width + 2 * std::min(static_cast<double>(weights) / width, 64 * width));
  }
  const double samples = static_cast<double>(layout_.samples), tokens = samples * most_rows,
               parameters = static_cast<double>(m.parameters()),
               state = 20 * parameters / layout_.grid.tensor,  // values, gradients, masters and moments
      activations = samples * kept;
  MP_REQUIRE(
      state + activations <= most_bytes, Exit::out_of_memory,
      "memory: a model of {:.3g} parameters with {:.3g} tokens in a micro-batch needs about {:.1e} GiB, "
      "which no machine has; take a smaller model.width, model.layers, train.micro_batch or data.sequence",
      parameters, tokens, (state + activations) / 0x1p30);
  MP_REQUIRE(tokens <= most_tokens, Exit::out_of_memory,
             "memory: a micro-batch of {:.3g} tokens (train.micro_batch x data.sequence) is more than the "
             "{:.3g} that can pass at once; take a smaller train.micro_batch",
             tokens, most_tokens);
}

void PassFootprint::include(const PassFootprint& other) {
  kept = std::max(kept, other.kept);
  waiting = std::max(waiting, other.waiting);
  scratch = std::max(scratch, other.scratch);
  exchange = std::max(exchange, other.exchange);
  zeros = std::max(zeros, other.zeros);
  backend.include(other.backend);
}

void PassesOnPaper::forget_footprint() {
  passes_.forget();
  workspace_->forget();
  tensor_.reserve(0);
}

/// What was asked for since it was forgotten.
PassFootprint PassesOnPaper::footprint_used() {
  return {.kept = passes_.kept().peak(),
          .scratch = passes_.scratch().peak(),
          .exchange = tensor_.scratch_bytes(),
          .zeros = 0,
          .backend = workspace_->largest()};
}

PassOnPaper PassesOnPaper::pass(int first, int last, Tape::WeightGradients weight_gradients, bool of_chunk) {
  forget_footprint();
  backend_->forget_work();
  PassOnPaper p;
  double start = 0;
  using Part = BlockPasses::Part;
  const auto told = [&](Part ended) {
    const double spent = backend_->seconds() - start;
    if (ended == Part::entry) sums_ = {};
    if (ended == Part::forward) {
      p.forward = spent;
      p.forward_sums = std::exchange(sums_, {});
    }
    if (ended == Part::backward) {
      p.backward_input = spent;
      p.backward_sums = std::exchange(sums_, {});
    }
    if (ended == Part::weights) p.backward_weight = spent;
    start = backend_->seconds();
  };
  std::vector<int> swapped;
  for (int block = first; block < last && of_chunk; ++block)
    if (model().blocks()[block].is_swapped) swapped.push_back(block);
  const BlockPasses::Taken taken = passes_.train(first, last, weight_gradients, told, swapped);
  p.backward = p.backward_input + p.backward_weight;
  p.put_off = taken.put_off;
  p.work = backend_->work();
  p.footprint = footprint_used();
  const bool in_halves = weight_gradients == Tape::WeightGradients::later;
  p.footprint.kept = (in_halves ? taken.kept : taken.room) - (of_chunk ? 0 : taken.entered);
  p.footprint.waiting = taken.beside;
  p.footprint.segments = taken.segments;
  return p;
}

void PassesOnPaper::choose(int block, int candidate) {
  for (int part = 0; part < static_cast<int>(model().blocks()[block].choices.size()); ++part)
    choose_part(block, part, candidate);
}

void PassesOnPaper::choose_part(int block, int part, int candidate) {
  const Model::Block::Choice& choice = model().blocks()[block].choices[part];
  choice_[choice.place] = static_cast<std::uint8_t>(std::min<int>(candidate, choice.units.size() - 1));
}

PassFootprint PassesOnPaper::training_footprint(int first, int last) {
  return training_footprint(first, last, weight_gradients());
}

PassFootprint PassesOnPaper::training_footprint(int first, int last, Tape::WeightGradients made) {
  PassFootprint footprint = pass(first, last, made, true).footprint;
  forget_footprint();
  GradientFolds folds(stage(), tensor_);
  for (int block = first; block < last; ++block)
    for (int unit : model().blocks()[block].units) {
      if (model().units()[unit]->flat_count() == 0) continue;
      folds.fold({unit, block}, 0);
      footprint.zeros = std::max(footprint.zeros, folds.zeros_bytes(*model().units()[unit]));
    }
  footprint.exchange = std::max(footprint.exchange, tensor_.scratch_bytes());
  return footprint;
}

PassFootprint PassesOnPaper::evaluation_footprint(int first, int last) {
  forget_footprint();
  for (const Tape::Mode mode : {Tape::Mode::calibrate, Tape::Mode::evaluate}) passes_.look(first, last, mode);
  return footprint_used();
}

PassFootprint PassesOnPaper::generation_footprint() {
  forget_footprint();
  Tape tape = passes_.make_tape(&passes_.outside());
  tape.mode = Tape::Mode::generate;
  const int shards = tensor_.logical();
  const std::int64_t padded = padded_vocabulary(model().continuation().value().vocabulary, shards);
  tape.logits =
      passes_.outside().take({tensor_.local_shards(), layout_.samples, padded / shards}, DType::f32);
  stage().forward(0, static_cast<int>(model().blocks().size()), {}, tape);
  return footprint_used();
}

void PassesOnPaper::each_operation(const std::function<void(const PricingBackend::Asked&)>& see) {
  backend_->on_operation(see);
  pass(0, static_cast<int>(model().blocks().size()), Tape::WeightGradients::now, false);
  backend_->on_operation({});
}

std::vector<ProductCall> PassesOnPaper::products() {
  std::set<ProductCall> all;
  each_operation([&](const PricingBackend::Asked& asked) {
    if (asked.product != nullptr) all.insert(*asked.product);
  });
  return {all.begin(), all.end()};
}

}  // namespace mindpipe
