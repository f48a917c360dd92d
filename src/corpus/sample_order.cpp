#include "corpus/sample_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/text.h"
#include "corpus/mersenne.h"

namespace mindpipe {

Epochs epochs_for(std::int64_t tokens_per_epoch, std::int64_t sequence, std::int64_t samples) {
  MP_CHECK(tokens_per_epoch > 0 && sequence > 0 && samples > 0 &&
               samples < std::numeric_limits<std::int64_t>::max() / 4 / sequence,
           "{} samples of {} tokens from {}", samples, sequence, tokens_per_epoch);
  Epochs epochs;
  epochs.count = (samples * sequence + 1 + tokens_per_epoch - 1) / tokens_per_epoch;
  if (epochs.count > 1) {
    const std::int64_t before = ((epochs.count - 1) * tokens_per_epoch - 1) / sequence,
                       each = (tokens_per_epoch - 1) / sequence;
    epochs.last_apart = samples - before < static_cast<std::int64_t>(0.8 * static_cast<double>(each));
  }
  return epochs;
}

std::int64_t numbers_in_order(const Documents& documents, Epochs epochs, std::int64_t samples) {
  return 2 * epochs.count * documents.count() + 1 + samples;
}

void require_order(const std::string& name, std::int64_t numbers) {
  constexpr std::int64_t most = std::int64_t{1} << 29;  // samples of a trillion tokens, of 2048 each
  MP_REQUIRE(numbers <= most, Exit::bad_configuration,
             "{}: the order of its samples is too long: train.steps x train.batch ask for {} numbers, which "
             "take {} (at most {}); train fewer steps",
             name, numbers, human_bytes(static_cast<double>(numbers) * 8),
             human_bytes(static_cast<double>(most) * 8));
}

namespace {

/// The samples of a line of tokens; fails where there is none.
std::int64_t samples_of(const Documents& documents, std::int64_t sequence, std::int64_t tokens) {
  MP_CHECK(tokens > sequence, "{}: {} tokens for samples of {}", documents.name(), tokens, sequence + 1);
  return (tokens - 1) / sequence;
}

/// All that an order follows from, in words.
std::string cause_of(const Documents& documents, const DocumentLengths& lengths, std::int64_t sequence,
                     std::optional<std::uint32_t> seed, Epochs epochs) {
  return fmt::format("order 1: {} documents, {} tokens, lengths {:016x}; sequence {}, {}, {} epochs{}",
                     documents.count(), lengths.tokens, lengths.digest, sequence,
                     seed ? fmt::format("seed {}", *seed) : "in order", epochs.count,
                     epochs.last_apart ? ", the last apart" : "");
}

/// Writes the line, the tokens before each of its positions, and the shuffle of `samples` samples, one behind
/// the other.
void fill_in(std::span<std::int64_t> numbers, const Documents& documents, std::int64_t sequence,
             std::optional<std::uint32_t> seed, Epochs epochs, std::int64_t samples) {
  const std::int64_t count = documents.count(), positions = epochs.count * count;
  const std::span<std::int64_t> line = numbers.first(static_cast<std::size_t>(positions)),
                                begins = numbers.subspan(line.size(), line.size() + 1),
                                shuffle = numbers.subspan(2 * line.size() + 1);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<std::int64_t>(i) % count;
  const std::int64_t together = (epochs.last_apart ? epochs.count - 1 : epochs.count) * count;
  std::optional<Mersenne> random;
  if (seed) {
    random.emplace(*seed);
    random->shuffle(line.data(), together);
    random->shuffle(line.data() + together, positions - together);
  }
  begins[0] = 0;
  for (std::size_t i = 0; i < line.size(); ++i) begins[i + 1] = begins[i] + documents.length(line[i]);
  if (!random) return;
  const std::int64_t first =
      epochs.last_apart ? (begins.back() / epochs.count * (epochs.count - 1) - 1) / sequence : samples;
  std::iota(shuffle.begin(), shuffle.end(), std::int64_t{0});
  random->shuffle(shuffle.data(), first);
  random->shuffle(shuffle.data() + first, samples - first);
}

/// Fewer numbers than these are worked out faster than they are read.
constexpr std::int64_t least_in_file = 1 << 16;

OrderFile numbers_of(const Documents& documents, std::int64_t sequence, std::optional<std::uint32_t> seed,
                     Epochs epochs, const std::string& folder, const DocumentLengths& lengths) {
  const std::int64_t samples = samples_of(documents, sequence, lengths.tokens * epochs.count),
                     count = numbers_in_order(documents, epochs, seed ? samples : 0);
  return {
      count < least_in_file ? "" : folder, cause_of(documents, lengths, sequence, seed, epochs), count,
      [&](std::span<std::int64_t> numbers) { fill_in(numbers, documents, sequence, seed, epochs, samples); }};
}

}  // namespace

SampleOrder::SampleOrder(const Documents& documents, std::int64_t sequence, std::optional<std::uint32_t> seed,
                         Epochs epochs, const std::string& folder,
                         const std::optional<DocumentLengths>& lengths)
    : sequence_(sequence),
      samples_(0),
      numbers_(
          numbers_of(documents, sequence, seed, epochs, folder, lengths ? *lengths : lengths_of(documents))) {
  const std::span<const std::int64_t> numbers = numbers_.numbers();
  const auto positions = static_cast<std::size_t>(epochs.count * documents.count());
  line_ = numbers.first(positions);
  begins_ = numbers.subspan(positions, positions + 1);
  shuffle_ = numbers.subspan(2 * positions + 1);
  samples_ = (begins_.back() - 1) / sequence;
}

SampleOrder::Start SampleOrder::start(std::int64_t k) const {
  const std::int64_t token = k * sequence_;
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), token);
  const std::int64_t position = after - begins_.begin() - 1;
  return {position, token - begins_[position]};
}

}  // namespace mindpipe
