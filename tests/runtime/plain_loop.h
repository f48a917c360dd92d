#pragma once
#include <array>
#include <memory>

#include "make_backend.h"
#include "runtime/parity.h"
#include "state/initial_values.h"
#include "wrong_backend.h"

namespace mindpipe {

/// Training as one would write it without a program, an executor or groups: blocks one after the other, sums
/// as plain loops. What a worker does on any layout must have the bits of this.
class PlainLoop {
 public:
  /// With `mistakes`, what a worker must not do: operations that go wrong, running statistics in the norm.
  explicit PlainLoop(const Config& config, const Mistakes& mistakes = {}, bool norms_statistics = false)
      : norms_statistics_(norms_statistics),
        config_(config),
        layout_(make_layout(config, {})),
        memory_(Memory::Kind::host),
        backend_(std::make_unique<WrongBackend>(make_cpu_backend(memory_, 1, "auto"), mistakes)),
        tensor_(*backend_, layout_.tensor_shards),
        context_{*backend_, tensor_, compute_dtype(config.train), false, config.seed},
        model_(make_model(config, context_)),
        kept_(memory_, MemoryClass::activations, 16 << 20),
        scratch_(memory_, MemoryClass::workspace, 16 << 20),
        feed_(config, layout_) {
    for (auto& unit : model_->units()) {
      unit->lay_out({layout_.tensor_shards, layout_.tensor_shards, 0}, layout_.tensor_shards, 0,
                    context_.dtype);
      unit->allocate_values(memory_);
      unit->gradients().allocate(memory_);
      State& state = states_.emplace_back();
      const std::size_t count = unit->flat_count();
      state.master.resize(count);
      state.m.resize(count);
      state.v.resize(count);
      initial_values(*unit, config.seed, 1, {0, unit->flat_count()}, state.master.data());
      round_values(*unit, state);
    }
  }

  Outcome run(int steps) {
    Outcome outcome;
    for (int s = 0; s < steps; ++s) step(s, outcome);
    const StepInput& input = feed_.at(steps);
    std::vector<Floats64> sums;
    for (int shard = 0; shard < layout_.data_shards; ++shard)
      sums.push_back({pass_of_shard(input, shard, false)});
    outcome.evaluation = tree(sums)[0];
    outcome.evaluated = input.valid;
    for (std::size_t i = 0; i < hits_.size(); ++i) outcome.hits[i] = static_cast<std::int64_t>(hits_[i]);
    outcome.state = digest();
    return outcome;
  }

  virtual ~PlainLoop() = default;

 protected:
  using Floats = std::vector<float>;
  using Floats64 = std::vector<double>;
  struct State {
    Floats master, m, v;  ///< m: of SGD the velocity
  };

  /// The one tree: neighbours first, an odd one goes up as it is.
  template <class Vector>
  static Vector tree(std::vector<Vector> leaves) {
    while (leaves.size() > 1) {
      std::vector<Vector> above;
      for (std::size_t i = 0; i < leaves.size(); i += 2) {
        above.push_back(leaves[i]);
        for (std::size_t k = 0; i + 1 < leaves.size() && k < leaves[i].size(); ++k)
          above.back()[k] = leaves[i][k] + leaves[i + 1][k];
      }
      leaves = above;
    }
    return leaves[0];
  }

  static Tensor view(Floats& floats, std::int64_t first, std::int64_t count) {
    return {floats.data() + first, {count}, DType::f32};
  }

  double targets() const { return static_cast<double>(layout_.batch * model_->targets_per_sample()); }

  void round_values(Unit& unit, State& state) {
    const Tensor masters = view(state.master, 0, unit.flat_count());
    if (unit.flat_count() == 0) return;
    if (unit.dtype() == DType::f32) backend_->copy(masters, unit.flat_values());
    else backend_->convert({masters, unit.flat_values()});
  }

  /// All micro-batches of a logical data shard; the sum of their losses.
  double pass_of_shard(const StepInput& input, int shard, bool training) {
    const int of_shard = layout_.micro_batches() / layout_.data_shards;
    double sum = 0;
    for (int m = shard * of_shard; m < (shard + 1) * of_shard; ++m) {
      Tape tape(*backend_, kept_, scratch_);
      tape.mode = training ? Tape::Mode::train : Tape::Mode::evaluate;
      tape.batch = {input.fields.part(m), layout_.samples, static_cast<std::int64_t>(m) * layout_.samples,
                    input.step, input.choice};
      tape.loss_factor = 1.0 / targets();
      tape.losses = scratch_.take({layout_.samples, model_->targets_per_sample()}, DType::f32);
      if (!training) tape.hits = {hits_.data(), {Hits::places}, DType::f64};
      auto& blocks = model_->blocks();
      Boundary b;
      for (auto& block : blocks) {
        if (!block.reads_encoder()) b.encoder_output = {};
        b = block.layer->forward(b, tape);
      }
      Boundary d;
      for (int i = static_cast<int>(blocks.size()) - 1; training && i >= 0; --i) {
        const bool is_last = i + 1 == static_cast<int>(blocks.size());
        const Shape memory = is_last || blocks[i].reads_encoder() ? blocks[i].memory : blocks[i + 1].memory;
        if (memory.rank > 0 && !d.encoder_output) {
          d.encoder_output = scratch_.take({layout_.samples, memory[0], memory[1]}, DType::f32);
          backend_->fill({d.encoder_output, 0});
        }
        d = blocks[i].layer->backward(d, tape);
      }
      double loss = 0;
      for (std::int64_t i = 0; i < tape.losses.count(); ++i) {
        if (training) loss += tape.losses.as<float>()[i];
        else sum += tape.losses.as<float>()[i];
      }
      sum += loss;
      tape.clear();
      scratch_.release(0);
      if (training) end_micro_batch();
    }
    return sum;
  }

  virtual void end_micro_batch() {}

  /// The gradient of one use of a unit over the micro-batches just run, T-ths of the sequence summed.
  Floats gradient_of(Unit& unit, int use) {
    Floats flat(unit.gradients().root(use).as<float>(),
                unit.gradients().root(use).as<float>() + unit.flat_count());
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      if (!unit.gradients().has_sequence_parts(p)) continue;
      const Tensor parts = unit.gradients().sequence_parts(p, use);
      std::vector<Floats> leaves;
      for (std::int64_t i = 0; i < parts.shape[0]; ++i)
        leaves.emplace_back(parts.at(i).as<float>(), parts.at(i).as<float>() + parts.shape[1]);
      const Floats sum = tree(leaves);
      std::copy(sum.begin(), sum.end(), flat.begin() + unit.flat_offset(p, 0));
    }
    return flat;
  }

  void step(int number, Outcome& outcome) {
    const StepInput& input = feed_.at(number);
    auto& units = model_->units();
    std::vector<Floats64> losses;
    std::vector<std::vector<std::vector<Floats>>> parts(units.size());  // [unit][use][data shard]
    for (int shard = 0; shard < layout_.data_shards; ++shard) {
      for (auto& unit : units)
        for (int use = 0; use < unit->uses(); ++use) backend_->fill({unit->gradients().accumulators(use), 0});
      losses.push_back({pass_of_shard(input, shard, true)});
      for (std::size_t u = 0; u < units.size(); ++u) {
        parts[u].resize(units[u]->uses());
        for (int use = 0; use < units[u]->uses(); ++use) parts[u][use].push_back(gradient_of(*units[u], use));
      }
    }
    std::vector<Floats> gradients;
    double squares = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      Floats whole = tree(parts[u][0]);
      for (int use = 1; use < units[u]->uses(); ++use) {
        const Floats more = tree(parts[u][use]);
        for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += more[i];
      }
      gradients.push_back(whole);
      for (int p = 0; p < static_cast<int>(units[u]->params().size()); ++p)
        if (units[u]->params()[p].is_learned() || norms_statistics_)
          squares += tensor_squares(*units[u], p, gradients.back());
    }
    const double tokens = static_cast<double>(input.valid);
    double factor = 1 / (1.0 / targets() * tokens);  // undoes the constant that backward started from
    const double norm = std::sqrt(squares) * factor;
    keep_noise(parts, factor, outcome);
    const double clip = config_.train.clip;
    if (clip > 0 && norm > clip) factor *= clip / (norm + 1e-6);
    outcome.losses.push_back(tree(losses)[0] / tokens);
    outcome.norms.push_back(norm);
    ++applied_;
    for (std::size_t u = 0; u < units.size(); ++u)
      update(*units[u], states_[u], gradients[u], static_cast<float>(factor), input.rate);
  }

  double squares_of(int unit, Floats& gradient) {
    Unit& one = *model_->units()[unit];
    double squares = 0;
    for (int p = 0; p < static_cast<int>(one.params().size()); ++p)
      if (one.params()[p].is_learned()) squares += tensor_squares(one, p, gradient);
    return squares;
  }

  /// Signal and noise of a step, from `parts` [unit][use][data shard] that were made whole.
  void keep_noise(std::vector<std::vector<std::vector<Floats>>>& parts, double factor, Outcome& outcome) {
    GradientNoise noise;
    if (config_.train.noise_every > 0 && layout_.data_shards > 1) {
      std::vector<double> squares(layout_.data_shards + 1, 0);
      for (std::size_t u = 0; u < parts.size(); ++u)
        for (std::vector<Floats>& use : parts[u]) {
          Floats sum = tree(use);
          squares.back() += squares_of(static_cast<int>(u), sum);
          for (int shard = 0; shard < layout_.data_shards; ++shard)
            squares[shard] += squares_of(static_cast<int>(u), use[shard]);
        }
      noise = gradient_noise(squares, factor, layout_.batch);
    }
    outcome.noise.insert(outcome.noise.end(), {noise.signal, noise.noise});
  }

  double tensor_squares(Unit& unit, int param, Floats& gradient) {
    std::vector<Floats64> shards;
    const std::int64_t count = unit.shard_shape(param).count();
    for (int s = 0; s < unit.local_shards(param); ++s) {
      Floats64 chunks((count + statistics_chunk - 1) / statistics_chunk);
      backend_->sum_squares({view(gradient, unit.flat_offset(param, s), count),
                             {chunks.data(), {static_cast<std::int64_t>(chunks.size())}, DType::f64}});
      double sum = 0;
      for (double chunk : chunks) sum += chunk;
      shards.push_back({sum});
    }
    return tree(shards)[0];
  }

  void update(Unit& unit, State& state, Floats& gradient, float factor, double given_rate) {
    const OptimizerConfig& o = config_.optimizer;
    const float rate = static_cast<float>(given_rate), beta1 = static_cast<float>(o.beta1),
                beta2 = static_cast<float>(o.beta2);
    std::array<double, Decision::places> numbers{};
    numbers[Decision::gradient_factor] = factor;
    numbers[Decision::first_correction] =
        1 - std::pow(static_cast<double>(beta1), static_cast<double>(applied_));
    numbers[Decision::second_correction] =
        1 / std::sqrt(1 - std::pow(static_cast<double>(beta2), static_cast<double>(applied_)));
    const Tensor decision{numbers.data(), {Decision::places}, DType::f64};
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      const float decay = unit.params()[p].decay ? static_cast<float>(o.weight_decay) : 0.0f;
      for (int s = 0; s < unit.local_shards(p); ++s) {
        const std::int64_t first = unit.flat_offset(p, s), count = unit.shard_shape(p).count();
        const Tensor dw = view(gradient, first, count), master = view(state.master, first, count),
                     m = view(state.m, first, count);
        if (!unit.params()[p].is_learned()) {
          follow(unit.params()[p], dw, master);
          continue;
        }
        switch (o.kind) {
          case OptimizerKind::adamw:
            backend_->adamw({.rule = {rate, beta1, beta2, static_cast<float>(o.epsilon), decay},
                             .decision = decision,
                             .gradient = dw,
                             .master = master,
                             .m = m,
                             .v = view(state.v, first, count)});
            break;
          case OptimizerKind::sgd:
            backend_->sgd({.rule = {rate, static_cast<float>(o.momentum), decay, o.nesterov},
                           .decision = decision,
                           .gradient = dw,
                           .master = master,
                           .velocity = o.momentum > 0 ? m : Tensor{}});
            break;
        }
      }
    }
    round_values(unit, state);
  }

  /// A running statistic: some of the way to the mean of what the micro-batches of the whole batch have.
  void follow(const ParamSpec& spec, const Tensor& sum, const Tensor& running) const {
    const float share = static_cast<float>(spec.follows),
                each = static_cast<float>(1.0 / (layout_.batch / layout_.samples));
    for (std::int64_t i = 0; i < sum.count(); ++i) {
      float& number = running.as<float>()[i];
      number += share * (each * sum.as<float>()[i] - number);
    }
  }

  Sha256::Digest digest() {
    Sha256 sha;
    for (const std::string_view slot : state_names(config_.train, config_.optimizer))
      for (std::size_t u = 0; u < states_.size(); ++u) {
        const Unit& unit = *model_->units()[u];
        State& state = states_[u];
        Floats values(state.master.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          std::uint32_t word;
          if (unit.dtype() == DType::f32) word = unit.flat_values().as<std::uint32_t>()[i];
          else word = std::uint32_t{unit.flat_values().as<std::uint16_t>()[i]} << 16;
          values[i] = std::bit_cast<float>(word);
        }
        const Floats& flat = slot == "value"    ? values
                             : slot == "master" ? state.master
                             : slot == "v"      ? state.v
                                                : state.m;
        for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
          if (is_moment(slot) && !unit.params()[p].is_learned()) continue;
          for (int piece = 0; piece < static_cast<int>(unit.params()[p].pieces.size()); ++piece) {
            const Piece& whole = unit.params()[p].pieces[piece];
            Floats tensor((whole.rows - whole.padding) * unit.params()[p].width());
            for (const ElementRun& run : runs_of(unit, {.param = p, .piece = piece}, {0, unit.flat_count()}))
              std::copy_n(flat.data() + run.flat, run.count,
                          tensor.data() + run.row * unit.params()[p].width() + run.column);
            sha.add(tensor.data(), tensor.size() * sizeof(float));
          }
        }
      }
    return sha.end();
  }

  bool norms_statistics_;
  Config config_;
  Layout layout_;
  Memory memory_;
  std::unique_ptr<Backend> backend_;
  Communicator tensor_;
  LayerContext context_;
  std::unique_ptr<Model> model_;
  Arena kept_, scratch_;
  BatchFeed feed_;
  std::vector<State> states_;
  std::int64_t applied_ = 0;
  std::array<double, Hits::places> hits_{};
};

}  // namespace mindpipe
