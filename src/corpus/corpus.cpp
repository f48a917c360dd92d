#include "corpus/corpus.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/ranges.h>
#include "core/check.h"
#include "corpus/arithmetic.h"
#include "corpus/reversed.h"
#include "corpus/token_file.h"

namespace mindpipe {

namespace {
constexpr std::string_view synthetic = "synthetic:", reversed = "reversed:";

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

/// What a corpus needs to know to open a source.
struct Opening {
  Subset subset;
  const std::vector<Field>& fields;
  std::uint64_t seed;
  std::int64_t planned;  ///< samples

  const Field& field(std::string_view name) const {
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
    MP_CHECK(found != fields.end(), "nobody reads {}", name);
    return *found;
  }
};

std::unique_ptr<TextDataset> open_texts(const std::string& path, const Opening& how) {
  const Field& tokens = how.field(field::tokens);
  const std::int64_t sequence = tokens.shape[0], vocabulary = tokens.below;
  if (path.starts_with(synthetic)) {
    MP_REQUIRE(
        path == "synthetic:arithmetic", Exit::bad_configuration,
        "data.{}: {} is not a corpus that the program can make; the one there is: synthetic:arithmetic",
        name_of(how.subset), path);
    return std::make_unique<ArithmeticDataset>(how.seed, how.subset, sequence, vocabulary);
  }
  std::unique_ptr<Documents> documents;
  if (path.ends_with(".txt")) documents = std::make_unique<TextFile>(path, how.subset, vocabulary);
  else documents = std::make_unique<TokenFile>(TokenFile::prefix_of(path), vocabulary);
  const bool trains = how.subset == Subset::train;
  return std::make_unique<DocumentDataset>(std::move(documents), sequence,
                                           trains ? std::optional(how.seed) : std::nullopt,
                                           trains ? how.planned : 0);
}

std::unique_ptr<Dataset> open_source(const std::string& path, const Opening& how) {
  if (!path.starts_with(reversed)) return open_texts(path, how);
  MP_REQUIRE(std::any_of(how.fields.begin(), how.fields.end(),
                         [](const Field& field) { return field.name == field::source; }),
             Exit::bad_configuration, "data.{}: {} makes pairs, and the model reads no source; name {}",
             name_of(how.subset), path, path.substr(reversed.size()));
  return std::make_unique<ReversedDataset>(open_texts(path.substr(reversed.size()), how),
                                           how.field(field::source).shape[0]);
}

/// Refuses a source whose samples lack a field that the model reads.
void require_fields(const Dataset& dataset, const DataSource& source, const Opening& how) {
  const std::vector<std::string_view> given = dataset.gives();
  for (const Field& field : how.fields)
    MP_REQUIRE(std::find(given.begin(), given.end(), field.name) != given.end(), Exit::bad_configuration,
               "data.{}: the model reads {}, and samples of {} have {} only; name a source that has it",
               name_of(how.subset), field.name, source.path, fmt::join(given, ", "));
}
}  // namespace

Corpus::Corpus(const DataConfig& data, Subset subset, const std::vector<Field>& fields, std::uint64_t seed,
               std::int64_t planned)
    : blend_(checked_weights(data, subset)) {
  const std::vector<double>& shares = blend_.shares();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto wanted = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(planned) * shares[i] * (shares.size() > 1 ? 1.005 : 1.0)));
    const DataSource& source = sources_of(data, subset)[i];
    const Opening how{subset, fields, seed, wanted};
    datasets_.push_back(open_source(source.path, how));
    require_fields(*datasets_.back(), source, how);
  }
}

void Corpus::batch(std::int64_t first_sample, const FieldTensors& to) {
  MP_CHECK(!to.entries().empty(), "a batch without fields");
  const std::int64_t samples = to.entries()[0].tensor.shape[0];
  MP_CHECK(first_sample >= 0 && first_sample <= std::numeric_limits<std::int64_t>::max() - samples,
           "samples from {}", first_sample);
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto [dataset, index] = blend_.at(first_sample + s);
    datasets_[dataset]->sample(index, to.part(s));
  }
}

std::vector<std::string> Corpus::describe() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < datasets_.size(); ++i)
    lines.push_back(fmt::format("{:5.1f} % {}", 100 * blend_.shares()[i], datasets_[i]->describe()));
  return lines;
}

}  // namespace mindpipe
