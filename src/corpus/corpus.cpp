#include "corpus/corpus.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/check.h"
#include "corpus/arithmetic.h"
#include "corpus/token_file.h"

namespace mindpipe {

namespace {
constexpr std::string_view synthetic = "synthetic:";

std::int64_t checked_sequence(const DataConfig& data, const ModelConfig& model) {
  const int sequence = data.sequence > 0 ? data.sequence : model.context;
  MP_REQUIRE(sequence > 0, Exit::bad_configuration,
             "data.sequence is {} and model.context is {} (one of them must be 1 or more)", data.sequence,
             model.context);
  MP_REQUIRE(sequence <= model.context, Exit::bad_configuration,
             "data.sequence is {} (model.context is {}, and no sequence may be longer); shorten the one or "
             "lengthen the other",
             sequence, model.context);
  return sequence;
}

const std::vector<DataSource>& sources_of(const DataConfig& data, Subset subset) {
  return subset == Subset::train ? data.train : data.validation;
}

std::vector<double> checked_weights(const DataConfig& data, Subset subset) {
  const auto& sources = sources_of(data, subset);
  MP_REQUIRE(!sources.empty(), Exit::bad_configuration,
             "data.{} names no source; give a .bin/.idx pair, a .txt file or synthetic:arithmetic",
             name_of(subset));
  std::vector<double> weights;
  for (const DataSource& source : sources) {
    MP_REQUIRE(std::isfinite(source.weight) && source.weight > 0, Exit::bad_configuration,
               "data.{}: the weight of {} is {} (must be above 0); leave the source out if it is not wanted",
               name_of(subset), source.path, source.weight);
    weights.push_back(source.weight);
  }
  return weights;
}

std::unique_ptr<Dataset> open_source(const std::string& path, Subset subset, std::int64_t sequence,
                                     std::int64_t vocabulary, std::uint64_t seed, std::int64_t planned) {
  if (path.starts_with(synthetic)) {
    MP_REQUIRE(
        path == "synthetic:arithmetic", Exit::bad_configuration,
        "data.{}: {} is not a corpus that the program can make; the one there is: synthetic:arithmetic",
        name_of(subset), path);
    return std::make_unique<ArithmeticDataset>(seed, subset, sequence, vocabulary);
  }
  std::unique_ptr<Documents> documents;
  if (path.ends_with(".txt")) documents = std::make_unique<TextFile>(path, subset, vocabulary);
  else documents = std::make_unique<TokenFile>(TokenFile::prefix_of(path), vocabulary);
  const auto order = subset == Subset::train ? std::optional(seed) : std::nullopt;
  return std::make_unique<DocumentDataset>(std::move(documents), sequence, order,
                                           subset == Subset::train ? planned : 0);
}
}  // namespace

Corpus::Corpus(const DataConfig& data, Subset subset, const ModelConfig& model, std::uint64_t seed,
               std::int64_t planned)
    : sequence_(checked_sequence(data, model)),
      blend_(checked_weights(data, subset)),
      sample_(static_cast<std::size_t>(sequence_) + 1) {
  const std::vector<double>& shares = blend_.shares();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto wanted = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(planned) * shares[i] * (shares.size() > 1 ? 1.005 : 1.0)));
    datasets_.push_back(
        open_source(sources_of(data, subset)[i].path, subset, sequence_, model.vocabulary, seed, wanted));
  }
}

void Corpus::batch(std::int64_t first_sample, std::int64_t samples, std::int32_t* tokens,
                   std::int32_t* targets) {
  MP_REQUIRE(samples > 0, Exit::bad_configuration,
             "a batch of {} samples was asked for (must be 1 or more); set train.batch and train.micro_batch",
             samples);
  MP_CHECK(first_sample >= 0 && first_sample <= std::numeric_limits<std::int64_t>::max() - samples,
           "samples from {}", first_sample);
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto [dataset, index] = blend_.at(first_sample + s);
    datasets_[dataset]->sample(index, sample_.data());
    std::copy_n(sample_.data(), sequence_, tokens + s * sequence_);
    std::copy_n(sample_.data() + 1, sequence_, targets + s * sequence_);
  }
}

std::vector<std::string> Corpus::describe() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < datasets_.size(); ++i)
    lines.push_back(fmt::format("{:5.1f} % {}", 100 * blend_.shares()[i], datasets_[i]->describe()));
  return lines;
}

}  // namespace mindpipe
