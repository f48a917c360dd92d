#include "corpus/sample_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check.h"
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

SampleOrder::SampleOrder(const Documents& documents, std::int64_t sequence, std::optional<std::uint32_t> seed,
                         Epochs epochs)
    : sequence_(sequence) {
  const std::int64_t count = documents.count();
  line_.resize(static_cast<std::size_t>(epochs.count * count));
  for (std::size_t i = 0; i < line_.size(); ++i) line_[i] = static_cast<std::int64_t>(i) % count;
  const std::int64_t together = (epochs.last_apart ? epochs.count - 1 : epochs.count) * count;
  std::optional<Mersenne> random;
  if (seed) {
    random.emplace(*seed);
    random->shuffle(line_.data(), together);
    random->shuffle(line_.data() + together, positions() - together);
  }

  begins_.resize(line_.size() + 1);
  for (std::size_t i = 0; i < line_.size(); ++i) begins_[i + 1] = begins_[i] + documents.length(line_[i]);
  const std::int64_t tokens = begins_.back();
  MP_CHECK(tokens > sequence, "{}: {} tokens for samples of {}", documents.name(), tokens, sequence + 1);
  samples_ = (tokens - 1) / sequence;

  if (random) {
    const std::int64_t first =
        epochs.last_apart ? (tokens / epochs.count * (epochs.count - 1) - 1) / sequence : samples_;
    shuffle_.resize(static_cast<std::size_t>(samples_));
    std::iota(shuffle_.begin(), shuffle_.end(), std::int64_t{0});
    random->shuffle(shuffle_.data(), first);
    random->shuffle(shuffle_.data() + first, samples_ - first);
  }
}

SampleOrder::Start SampleOrder::start(std::int64_t k) const {
  const std::int64_t token = k * sequence_;
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), token);
  const std::int64_t position = after - begins_.begin() - 1;
  return {position, token - begins_[position]};
}

}  // namespace mindpipe
