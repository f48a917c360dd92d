#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "config/config.h"
#include "layers/embedding.h"
#include "program/choice_parts.h"

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

CostModel::CostModel(const Config& config, const Layout& layout)
    : train_(config.train),
      optimizer_(config.optimizer),
      schedule_(config.schedule.kind),
      layout_(layout),
      memory_(Memory::Kind::counted),
      backend_(
          make_pricing_backend(memory_, description_of(config), row_of(config.device.kind).wants_many_rows)),
      workspace_(workspace_of(config)),
      tensor_(*backend_, layout.tensor_shards, OnPaper{layout.grid.tensor, layout.coord.tensor}),
      passes_(config, layout, *backend_, memory_, tensor_) {
  if (!config.device.profile.empty()) profile_ = read_profile(config.device.profile);
  backend_->tell(*workspace_);
  tensor_.on_tensor_sum([this](const TensorSum& sum) {
    ++sums_.calls;
    sums_.bytes += sum.bytes;
  });
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
void CostModel::require_countable() const {
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

/// All passes of a step together stay below the 292 years that 64 bits can hold.
std::int64_t CostModel::nanoseconds(double seconds) const {
  const double passes = static_cast<double>(passes_.model().blocks().size()) * layout_.micro_batches();
  return std::llround(std::min(seconds * 1e9, 0x1p59 / passes));
}

void CostModel::Footprint::include(const Footprint& other) {
  kept = std::max(kept, other.kept);
  waiting = std::max(waiting, other.waiting);
  scratch = std::max(scratch, other.scratch);
  exchange = std::max(exchange, other.exchange);
  zeros = std::max(zeros, other.zeros);
  backend.include(other.backend);
}

void CostModel::forget_footprint() {
  passes_.forget();
  workspace_->forget();
  tensor_.reserve(0);
}

/// What was asked for since it was forgotten.
CostModel::Footprint CostModel::footprint_used() {
  return {.kept = passes_.kept().peak(),
          .scratch = passes_.scratch().peak(),
          .exchange = tensor_.scratch_bytes(),
          .zeros = 0,
          .backend = workspace_->largest()};
}

/// Passes of a chunk, with the copy of what enters it, its swapped blocks in segments of their own; or of
/// blocks as what each of them costs adds up.
CostModel::Pass CostModel::pass(int first, int last, Tape::WeightGradients weight_gradients, bool of_chunk) {
  forget_footprint();
  backend_->forget_work();
  Pass p;
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

/// Lets a block be this candidate, or the last where it has fewer.
void CostModel::choose(int block, int candidate) {
  for (int part = 0; part < static_cast<int>(model().blocks()[block].choices.size()); ++part)
    choose_part(block, part, candidate);
}

void CostModel::choose_part(int block, int part, int candidate) {
  const Model::Block::Choice& choice = model().blocks()[block].choices[part];
  choice_[choice.place] = static_cast<std::uint8_t>(std::min<int>(candidate, choice.units.size() - 1));
}

CostModel::Footprint CostModel::training_footprint(int first, int last) {
  return training_footprint(first, last, weight_gradients());
}

CostModel::Footprint CostModel::training_footprint(int first, int last, Tape::WeightGradients made) {
  Footprint footprint = pass(first, last, made, true).footprint;
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

CostModel::Footprint CostModel::evaluation_footprint(int first, int last) {
  forget_footprint();
  for (const Tape::Mode mode : {Tape::Mode::calibrate, Tape::Mode::evaluate}) passes_.look(first, last, mode);
  return footprint_used();
}

CostModel::Footprint CostModel::generation_footprint() {
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

void CostModel::each_operation(const std::function<void(const PricingBackend::Asked&)>& see) {
  backend_->on_operation(see);
  pass(0, static_cast<int>(model().blocks().size()), Tape::WeightGradients::now, false);
  backend_->on_operation({});
}

std::vector<ProductCall> CostModel::products() {
  std::set<ProductCall> all;
  each_operation([&](const PricingBackend::Asked& asked) {
    if (asked.product != nullptr) all.insert(*asked.product);
  });
  return {all.begin(), all.end()};
}

UnitCost CostModel::cost_of(const Unit& unit) const {
  const std::int64_t gradients = unit.flat_count() * 4, accumulators = unit.gradients().bytes_of_use();
  UnitCost cost;
  cost.values = value_bytes(unit);
  cost.gradients = gradients;
  const auto cuts = share_edges(unit, layout_.grid.data);
  for (int share = 0; share < layout_.grid.data; ++share)
    cost.share = std::max(cost.share, 4 * (cuts[share + 1] - cuts[share]));
  cost.sequence_parts = accumulators - gradients * (1 + unit.gradients().levels());
  cost.state = gradients * (std::ssize(optimizer_.moments()) + (unit.dtype() == DType::bf16 ? 1 : 0));
  cost.tensors = static_cast<int>(unit.params().size());
  const bool in_shares = train_.zero > 0 && layout_.grid.data > 1;
  const int counters = row_of(schedule_).of_subnets ? 2 : 1;
  cost.moved = counters * std::int64_t{8} +
               (in_shares ? cost.share : gradients) * (1 + std::ssize(optimizer_.moments()));
  const double clears = profile_ ? profile_->clear : backend_->device().bytes,
               updates = profile_ ? profile_->update : backend_->device().bytes;
  std::int64_t written = 0;  // of one use
  for (int use = 0; backend_->wants_many_rows() && use < unit.uses(); ++use)
    written += 4 * elements_of_products(unit, use) / unit.uses();
  cost.clear = nanoseconds(
      static_cast<double>(accumulators - gradients * unit.gradients().levels() - written) / clears);
  cost.update = nanoseconds(static_cast<double>(unit.flat_count()) * bytes_of_update / updates);
  return cost;
}

std::uint64_t CostModel::work_of(int block) { return pass(block, block + 1, weight_gradients(), false).work; }

double CostModel::described_seconds(int block) {
  const Pass p = pass(block, block + 1, weight_gradients(), false);
  return p.forward + p.backward;
}

void CostModel::take_measured(Pass& p) {
  if (!profile_) return;
  const auto found = profile_->passes.find(p.work);
  if (found != profile_->passes.end()) {
    p.forward = found->second.forward;
    p.backward_input = found->second.input;
    p.backward_weight = found->second.weight;
    scattered_ += found->second.spread * (p.forward + p.backward_input + p.backward_weight);
  } else {
    for (double* seconds : {&p.forward, &p.backward_input, &p.backward_weight}) *seconds *= profile_->factor;
    estimated_ += p.forward + p.backward_input + p.backward_weight;
  }
  p.backward = p.backward_input + p.backward_weight;
  all_ += p.forward + p.backward;
}

BlockCost CostModel::cost_of_block(int block) {
  Pass p = pass(block, block + 1, weight_gradients(), false);
  take_measured(p);
  BlockCost cost;
  cost.forward = nanoseconds(p.forward);
  cost.backward = nanoseconds(p.backward);
  cost.backward_input = nanoseconds(p.backward_input);
  cost.backward_weight = nanoseconds(p.backward_weight);
  cost.forward_sums = p.forward_sums;
  cost.backward_sums = p.backward_sums;
  cost.saved = p.footprint.kept;
  cost.put_off = p.put_off;
  cost.workspace = p.footprint.scratch;
  if (weight_gradients() == Tape::WeightGradients::now) return cost;
  // A backward that is whole all the same copies no gradient. A profile has the halves alone.
  const Pass whole = pass(block, block + 1, Tape::WeightGradients::now, false);
  cost.split_only = cost.saved - static_cast<std::int64_t>(whole.footprint.kept);
  if (!profile_) cost.backward = nanoseconds(whole.backward);
  return cost;
}

/// What crosses the cut before a block. The gradient of an encoder's output is f32.
BoundaryBytes CostModel::crossing(int block) {
  const auto [activation, memory] = stage().before(block);
  const auto bytes = [](const Shape& shape, DType dtype) {
    return shape.rank == 0 ? 0 : static_cast<std::int64_t>(bytes_for(shape, dtype));
  };
  const DType dtype = stage().context().dtype;
  return {bytes(activation, dtype), bytes(memory, dtype), bytes(activation, dtype),
          bytes(memory, DType::f32)};
}

double CostModel::operations_of_block(int block) {
  const double before = backend_->operations();
  pass(block, block + 1, Tape::WeightGradients::now, false);
  return backend_->operations() - before;
}

std::vector<double> CostModel::operations_of_blocks() {
  std::vector<double> all(model().blocks().size());
  for (std::size_t b = 0; b < all.size(); ++b) all[b] = operations_of_block(static_cast<int>(b));
  return all;
}

/// What the candidates of a block's parts cost, one part after the other. Those of several parts add up: the
/// first part's are priced with the cheapest of the others, theirs are what they cost more than those.
std::vector<BlockCost> CostModel::costs_of_choice(int block) {
  const auto& parts = model().blocks()[block].choices;
  const auto each = [&](int part, const auto& see) {
    for (int candidate = 0; candidate < static_cast<int>(parts[part].units.size()); ++candidate) {
      choose_part(block, part, candidate);
      see(candidate, cost_of_block(block));
    }
  };
  choose(block, 0);
  std::vector<int> cheapest(parts.size(), 0);
  for (int part = 0; parts.size() > 1 && part < static_cast<int>(parts.size()); ++part) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each(part, [&](int candidate, const BlockCost& cost) {
      if (cost.passes() >= least) return;
      least = cost.passes();
      cheapest[part] = candidate;
    });
    choose_part(block, part, cheapest[part]);
  }
  const BlockCost base = cost_of_block(block);
  std::vector<BlockCost> costs;
  for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
    each(part, [&](int, BlockCost cost) {
      if (part > 0) cost -= base;
      costs.push_back(cost);
    });
    choose_part(block, part, cheapest[part]);
  }
  return costs;
}

Outline CostModel::outline() {
  Outline outline;
  for (int u = 0; u < static_cast<int>(model().units().size()); ++u) {
    outline.units.push_back(cost_of(*model().units()[u]));
    outline.units.back().shared = model().is_shared(u);
  }
  for (int b = 0; b < static_cast<int>(model().blocks().size()); ++b) {
    const Model::Block& block = model().blocks()[b];
    if (block.is_choice()) {
      std::vector<BlockPart> parts;
      std::vector<int> units;
      for (const Model::Block::Choice& choice : block.choices) {
        parts.push_back(
            {choice.place, static_cast<int>(units.size()), static_cast<int>(choice.units.size())});
        units.insert(units.end(), choice.units.begin(), choice.units.end());
      }
      add_choice(outline, costs_of_choice(b), units, parts);
    } else {
      outline.add_block(cost_of_block(b), block.units);
    }
    outline.cuts.push_back(crossing(b));
  }
  if (model().has_choices()) outline.parts_of.resize(outline.blocks.size());
  for (const Model::Block& block : model().blocks()) outline.swapped.push_back(block.is_swapped ? 1 : 0);
  return outline;
}

}  // namespace mindpipe
