#include "runtime/block_timer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "config/config.h"
#include "core/clock.h"
#include "core/random.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

constexpr int warm_up_passes = 2;
/// More than caches hold: what lies further apart is read from memory all the same.
constexpr std::int64_t most_elsewhere = std::int64_t{128} << 20;
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

/// Writes numbers below `most` in size by lot, which f32 and bf16 read alike: what multiplies zeros needs
/// less power, and a processor runs faster then.
void BlockTimer::fill_by_lot(void* there, std::size_t bytes, double most) {
  constexpr std::size_t at_once = 1 << 18;
  const RandomStream lots{0, purpose_of("numbers of a profile")};
  std::vector<std::uint32_t> words(std::min(bytes, at_once) / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto half = [&](std::uint64_t word) {
      const auto number = static_cast<float>(most * (static_cast<double>(word & 0xffff) / 32768.0 - 1));
      return std::bit_cast<std::uint32_t>(number) >> 16;
    };
    const std::uint64_t word = lots.word(i);
    words[i] = half(word) << 16 | half(word >> 16);
  }
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes; at += at_once) {
    const auto count = static_cast<std::int64_t>(std::min(at_once, bytes - at) / sizeof(std::uint32_t));
    backend_->upload(words.data(), {static_cast<std::byte*>(there) + at, {count}, DType::f32});
  }
  backend_->synchronize();
}

/// Memory for a block's units, all of it written: pages that nobody has written are one page of zeros, which
/// lies in every cache.
void BlockTimer::allocate(int block) {
  const PassFootprint footprint = counted_.passes().training_footprint(block, block + 1);
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
  for (Arena* arena : {&passes_.kept(), &passes_.outside()})
    if (arena->size() > 0) fill_by_lot(arena->address_of(0), arena->size(), 1);
  for (const int index : passes_.model().blocks()[block].units) {
    Unit& unit = *passes_.model().units()[index];
    unit.allocate_values(memory_);
    unit.gradients().allocate(memory_);
    const Tensor values = unit.flat_values();
    fill_by_lot(values.data, values.bytes(), 0.05);
    for (int use = 0; use < unit.uses(); ++use) backend_->fill({unit.gradients().accumulators(use), 0});
  }
}

/// Bytes that passes over the blocks [first, last) touch: values, gradients and tapes.
std::int64_t BlockTimer::touched(int first, int last) {
  std::int64_t bytes = 0;
  for (int block = first; block < last && bytes < most_elsewhere; ++block) {
    bytes += static_cast<std::int64_t>(counted_.passes().training_footprint(block, block + 1).kept);
    for (const int index : passes_.model().blocks()[block].units) {
      const Unit& unit = *passes_.model().units()[index];
      bytes += static_cast<std::int64_t>(value_bytes(unit) + unit.gradients().bytes_of_use());
    }
  }
  return std::min(bytes, most_elsewhere);
}

/// The block in the middle of those that do the same work: its price is for all of them.
int BlockTimer::middle_of_alike(int block) {
  const std::uint64_t work = counted_.work_of(block);
  std::vector<int> alike;
  for (int other = 0; other < static_cast<int>(passes_.model().blocks().size()); ++other)
    if (counted_.work_of(other) == work) alike.push_back(other);
  return alike[(alike.size() - 1) / 2];
}

/// What other blocks read and write between two passes of one: so many bytes of their own, and what is around
/// all passes, which stays in caches.
void BlockTimer::work_elsewhere(std::int64_t bytes) {
  if (bytes == 0) return;
  const std::size_t half = others_.size() / 2;
  const auto go_through = [&](void* there, std::size_t size) {
    const Shape numbers{static_cast<std::int64_t>(std::min(size, half) / sizeof(float))};
    if (numbers.count() > 0)
      backend_->accumulate({{there, numbers, DType::f32}, {others_.address_of(half), numbers, DType::f32}});
  };
  go_through(others_.address_of(0), static_cast<std::size_t>(bytes) / 2);
  for (Arena* shared : {&passes_.scratch(), &passes_.outside()})
    if (shared->size() > 0) go_through(shared->address_of(0), shared->size());
  backend_->synchronize();
}

MeasuredPass BlockTimer::time(int block, const std::function<bool(int passes, double spread)>& goes_on) {
  using Part = BlockPasses::Part;
  allocate(block);
  const int place = middle_of_alike(block);
  const std::int64_t below = touched(0, place),
                     above = touched(place + 1, static_cast<int>(passes_.model().blocks().size()));
  if (const auto most = static_cast<std::size_t>(std::max(below, above)); most > 0) {
    others_ = Arena(memory_, MemoryClass::workspace, 2 * aligned(most / 2));
    backend_->fill(
        {others_.take({static_cast<std::int64_t>(others_.size() / sizeof(float))}, DType::f32), 0});
  }
  std::array<std::vector<double>, 3> seconds;  // forward, backward, weights put off
  std::vector<double> whole;
  for (int pass = -warm_up_passes; pass < 0 || goes_on(pass, whole.size() < 2 ? 1 : spread_of(whole));
       ++pass) {
    passes_.forget();
    work_elsewhere(below);
    std::int64_t start = 0;
    double sum = 0;
    passes_.train(block, block + 1, weight_gradients_, [&](Part ended) {
      backend_->synchronize();
      const double spent = seconds_since(start);
      if (ended != Part::entry && pass >= 0) {
        seconds[static_cast<std::size_t>(ended) - 1].push_back(spent);
        sum += spent;
      }
      if (ended == Part::forward) work_elsewhere(above);
      if (ended == Part::backward) work_elsewhere(below);
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
