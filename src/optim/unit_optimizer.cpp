#include "optim/unit_optimizer.h"

#include <algorithm>

#include "optim/update_rule.h"

namespace mindpipe {
UnitOptimizer::UnitOptimizer(Unit& unit, const OptimizerConfig& config, int share, int shares)
    : unit_(unit), config_(config), flat_(unit, share, shares) {
  for (const FlatRange& range : flat_.ranges()) {
    const ParamSpec& spec = unit.params()[range.param];
    const FlatSpan here{range.flat - begin(), range.count};
    squares_.push_back({here, range.first_chunk});
    if (spec.is_learned())
      learned_.push_back({here, spec.decay ? static_cast<float>(config_.weight_decay) : 0.0f});
  }
}

std::size_t UnitOptimizer::bytes() const {
  const std::size_t one = aligned(flat_.count() * sizeof(float));
  return one * (config_.moments().size() + (unit_.dtype() == DType::bf16 ? 1 : 0));
}

std::size_t UnitOptimizer::gradient_bytes() const { return aligned(flat_.count() * sizeof(float)); }

Tensor UnitOptimizer::gradient_share(int use) const {
  const std::int64_t count = flat_.count();
  if (count == 0) return {nullptr, {0}, DType::f32};
  if (use < static_cast<int>(gradients_apart_.size()) && gradients_apart_[use]) return gradients_apart_[use];
  return unit_.gradients().root(use).range(begin(), count);
}

void UnitOptimizer::allocate(Memory& memory, const std::vector<char>& apart, Memory* host) {
  MP_CHECK(unit_.dtype() != DType::f64, "unit {}: f64 is for gradient checks, not for training",
           unit_.name());
  Memory& keeper = host != nullptr ? *host : memory;
  is_on_host_ = host != nullptr && bytes() > 0;
  arena_ = Arena(keeper, MemoryClass::optimizer, bytes());
  moments_are_zero_ = keeper.gives_zeros(bytes());
  place_apart(memory, apart);
  kept_ = state_at([this] { return arena_.take({flat_.count()}, DType::f32); });
}

UnitOptimizer::State UnitOptimizer::state_at(const std::function<Tensor()>& take) const {
  State state;
  if (flat_.count() == 0) return state;
  if (unit_.dtype() == DType::bf16) state.master = take();
  for (std::size_t i = 0; i < config_.moments().size(); ++i) state.moments.push_back(take());
  return state;
}

void UnitOptimizer::take_slot(void* slot) {
  auto* place = static_cast<std::byte*>(slot);
  fetched_ = state_at([&] {
    const Tensor tensor{place, {flat_.count()}, DType::f32};
    place += aligned(tensor.bytes());
    return tensor;
  });
}

std::vector<std::pair<Tensor, Tensor>> UnitOptimizer::fetched() const {
  std::vector<std::pair<Tensor, Tensor>> all;
  if (!fetched_) return all;
  if (kept_.master) all.emplace_back(kept_.master, fetched_->master);
  for (std::size_t i = 0; i < kept_.moments.size(); ++i)
    all.emplace_back(kept_.moments[i], fetched_->moments[i]);
  return all;
}

void UnitOptimizer::place_apart(Memory& memory, const std::vector<char>& apart) {
  const std::int64_t count = flat_.count();
  gradients_apart_.clear();
  gradient_arena_ = Arena();
  if (count == 0) return;
  gradient_arena_ =
      Arena(memory, MemoryClass::gradients,
            gradient_bytes() * static_cast<std::size_t>(std::count(apart.begin(), apart.end(), 1)));
  for (const char one : apart)
    gradients_apart_.push_back(one != 0 ? gradient_arena_.take({count}, DType::f32) : Tensor{});
}

void UnitOptimizer::write(Backend& backend, std::string_view state, std::int64_t first,
                          const Tensor& values) {
  const std::int64_t begin = std::max(first, this->begin()),
                     end = std::min(first + values.count(), this->end());
  if (begin >= end) return;
  for (const auto& [name, kept] : states()) {
    if (name != state) continue;
    backend.copy(values.range(begin - first, end - begin), kept.range(begin - this->begin(), end - begin));
    if (name != "master") moments_are_zero_ = false;
  }
}

void UnitOptimizer::clear_moments(Backend& backend) {
  if (moments_are_zero_) return;  // their pages come with the first update, not before the first step
  for (const Tensor& moment : kept_.moments) backend.fill({moment, 0});
  moments_are_zero_ = true;
}

void UnitOptimizer::chunk_squares(Backend& backend, const Tensor& sums, int use) const {
  if (!squares_.empty()) backend.sum_squares_of_spans({gradient_share(use), sums, squares_});
}

void UnitOptimizer::update(Backend& backend, double rate, const Tensor& decision,
                           std::int64_t micro_batches) {
  moments_are_zero_ = false;
  MP_CHECK(fetched_.has_value() == is_on_host_, "unit {} is updated without its masters and moments",
           unit_.name());
  if (flat_.count() == 0) return;
  const State& here = fetched_ ? *fetched_ : kept_;
  const Tensor gradient = gradient_share(0), values = unit_.flat_values().range(begin(), flat_.count()),
               master = here.master ? here.master : values, rounded = here.master ? values : Tensor{};
  for (const FlatRange& range : flat_.ranges()) {
    const ParamSpec& spec = unit_.params()[range.param];
    if (spec.constant || spec.is_learned()) continue;
    const auto part = [&](const Tensor& of) {
      return of ? of.range(range.flat - begin(), range.count) : Tensor{};
    };
    backend.running_mean({spec.follows, 1.0 / static_cast<double>(micro_batches), decision, part(gradient),
                          part(master), part(rounded)});
  }
  if (!learned_.empty())
    apply(backend,
          {config_, static_cast<float>(rate), decision, gradient, master, here.moments, rounded, learned_});
}

std::vector<std::pair<std::string, Tensor>> UnitOptimizer::states() const {
  std::vector<std::pair<std::string, Tensor>> all;
  if (kept_.master) all.emplace_back("master", kept_.master);
  for (std::size_t i = 0; i < kept_.moments.size(); ++i)
    all.emplace_back(config_.moments()[i], kept_.moments[i]);
  return all;
}

}  // namespace mindpipe
