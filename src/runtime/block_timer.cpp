#include "runtime/block_timer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "config/config.h"
#include "core/clock.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

constexpr int warm_up_passes = 2;
constexpr std::int64_t array_elements = std::int64_t{4} << 20;  // 16 MiB each: more than a core's caches

double quantile(std::vector<double> numbers, double share) {
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + place, numbers.end());
  return numbers[static_cast<std::size_t>(place)];
}

double spread_of(const std::vector<double>& numbers) {
  const double middle = quantile(numbers, 0.5);
  return std::max(quantile(numbers, 0.75) - middle, middle - quantile(numbers, 0.25)) / middle;
}

}  // namespace

BlockTimer::BlockTimer(const Config& config, const World& world, CostModel& counted)
    : layout_(make_layout(config, {})),
      counted_(counted),
      memory_(row_of(config.device.kind).memory),
      backend_(make_backend(config, memory_, threads_of(config.device), world)),
      tensor_(*backend_, layout_.tensor_shards, OnPaper{layout_.grid.tensor, 0}),
      passes_(config, layout_, *backend_, memory_, tensor_),
      weight_gradients_(row_of(config.schedule.kind).splits_backward ? Tape::WeightGradients::later
                                                                     : Tape::WeightGradients::now) {
  passes_.stage().allocate_statistics({{0, static_cast<int>(passes_.model().blocks().size())}});
}

/// Memory for a block's units, all of it written: pages that nobody has written are one page of zeros, which
/// lies in every cache.
void BlockTimer::allocate(int block) {
  const CostModel::Footprint footprint = counted_.training_footprint(block, block + 1);
  std::size_t outside = 0;
  for (const int at : {block, block + 1}) {
    if (at == static_cast<int>(passes_.model().blocks().size())) continue;
    const auto [activation, memory] = passes_.stage().before(at);
    for (const Shape& shape : {activation, memory})
      if (shape.rank > 0) outside += aligned(bytes_for(shape, DType::f32));
  }
  tensor_.reserve(footprint.exchange);
  backend_->reserve(footprint.backend);
  passes_.allocate({footprint.kept + footprint.waiting, footprint.scratch, outside + aligned(1)});
  for (const int index : passes_.model().blocks()[block].units) {
    Unit& unit = *passes_.model().units()[index];
    unit.allocate_values(memory_);
    unit.allocate_gradients(memory_);
    backend_->fill({unit.flat_values(), 0.01});
    for (int use = 0; use < unit.uses(); ++use) backend_->fill({unit.accumulators(use), 0});
  }
}

MeasuredPass BlockTimer::time(int block, const std::function<bool(int passes, double spread)>& goes_on) {
  using Part = BlockPasses::Part;
  allocate(block);
  std::array<std::vector<double>, 3> seconds;  // forward, backward, weights put off
  std::vector<double> whole;
  for (int pass = -warm_up_passes; pass < 0 || goes_on(pass, whole.size() < 2 ? 1 : spread_of(whole));
       ++pass) {
    passes_.forget();
    std::int64_t start = 0;
    double sum = 0;
    passes_.train(block, block + 1, weight_gradients_, [&](Part ended) {
      backend_->synchronize();
      const double spent = seconds_since(start);
      if (ended != Part::entry && pass >= 0) {
        seconds[static_cast<std::size_t>(ended) - 1].push_back(spent);
        sum += spent;
      }
      start = now_ns();
    });
    if (pass >= 0) whole.push_back(sum);
  }
  const auto median = [](const std::vector<double>& numbers) { return quantile(numbers, 0.5); };
  const bool halves = weight_gradients_ == Tape::WeightGradients::later;
  return {.forward = median(seconds[0]),
          .input = median(seconds[1]),
          .weight = halves ? median(seconds[2]) : 0,
          .spread = spread_of(whole),
          .block = passes_.model().blocks()[block].name};
}

double BlockTimer::seconds_of(const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int time = 0; time < 9; ++time) {
    backend_->synchronize();
    const std::int64_t start = now_ns();
    call();
    backend_->synchronize();
    if (time > 1) seconds.push_back(seconds_since(start));
  }
  return quantile(seconds, 0.5);
}

double BlockTimer::clear_rate() {
  Arena arena(memory_, MemoryClass::workspace, array_elements * sizeof(float));
  const Tensor x = arena.take({array_elements}, DType::f32);
  return static_cast<double>(x.bytes()) / seconds_of([&] { backend_->fill({x, 0}); });
}

double BlockTimer::update_rate() {
  Arena arena(memory_, MemoryClass::workspace, 4 * array_elements * sizeof(float) + 4096);
  std::array<Tensor, 4> arrays;  // gradient, master and moments
  for (Tensor& array : arrays) {
    array = arena.take({array_elements}, DType::f32);
    backend_->fill({array, 0.01});
  }
  const Tensor decision = arena.take({Decision::places}, DType::f64);
  std::array<double, Decision::places> taken{};
  for (const auto place : {Decision::gradient_factor, Decision::applied_steps, Decision::first_correction,
                           Decision::second_correction})
    taken[place] = 1;
  backend_->upload(taken.data(), decision);
  const AdamW rule{.rate = 1e-9F, .beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-8F, .decay = 0};
  const double seconds = seconds_of([&] {
    backend_->adamw({rule, decision, arrays[0], arrays[1], arrays[2], arrays[3]});
  });
  return bytes_of_update * static_cast<double>(array_elements) / seconds;
}

}  // namespace mindpipe
