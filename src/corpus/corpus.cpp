#include "corpus/corpus.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>

#include <fmt/ranges.h>
#include "config/tokens.h"
#include "core/check.h"
#include "corpus/answers.h"
#include "corpus/arithmetic.h"
#include "corpus/masked.h"
#include "corpus/pairs.h"
#include "corpus/pictures.h"
#include "corpus/reversed.h"
#include "corpus/token_file.h"
#include "corpus/token_origin.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {

namespace {
constexpr std::string_view synthetic = "synthetic:", reversed = "reversed:", pairs = "pairs:",
                           cifar10 = "cifar10:", cifar100 = "cifar100:";

const std::vector<DataSource>& sources_of(const DataConfig& data, Subset subset) {
  return subset == Subset::train ? data.train : data.validation;
}

std::vector<double> checked_weights(const DataConfig& data, Subset subset) {
  const auto& sources = sources_of(data, subset);
  MP_REQUIRE(!sources.empty(), Exit::bad_configuration,
             "data.{} names no source (--help-config says what a source may be)", name_of(subset));
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
  const DataConfig& data;
  Subset subset;
  const std::vector<Field>& fields;
  std::uint64_t seed;
  std::int64_t planned;        ///< samples
  std::size_t number;          ///< number of the source
  const std::string& orders;   ///< folder for orders of samples
  const Tokenizer* tokenizer;  ///< none: bytes

  std::vector<Field>::const_iterator find(std::string_view name) const {
    return std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  }
  bool wants(std::string_view name) const { return find(name) != fields.end(); }
  const Field& field(std::string_view name) const {
    MP_CHECK(wants(name), "nobody reads {}", name);
    return *find(name);
  }
  /// Refuses what the program makes of bytes where tokens are others.
  void require_bytes(const std::string& path) const {
    MP_REQUIRE(tokenizer == nullptr, Exit::bad_configuration,
               "data.{}[{}]: {} makes texts of bytes, and data.tokenizer is {}; leave data.tokenizer out",
               name_of(subset), number, path, data.tokenizer);
  }
  bool trains() const { return subset == Subset::train; }
  /// The seed of an order, which held-out data have none of.
  std::optional<std::uint64_t> order() const { return trains() ? std::optional(seed) : std::nullopt; }
};

/// What a source holds that gives a field, in words.
std::string_view kind_of_source(std::string_view field) {
  return field == field::picture ? "pictures" : field == field::source ? "pairs of texts" : "texts";
}

/// What a model does with samples of its own kind, in words.
std::string_view what_it_does(const Opening& how) {
  return how.wants(field::picture)  ? "classifies pictures"
         : how.wants(field::source) ? "reads pairs of texts"
         : how.wants(field::picked) ? "masks tokens of texts"
                                    : "reads texts";
}

/// What may be named as a source for a model, in words.
std::string_view what_fits(const Opening& how) {
  return how.wants(field::picture)
             ? "an IDX file with images-idx3 or images-idx4 in its name, cifar10:FILE, cifar100:FILE, "
               "synthetic:shapes"
         : how.wants(field::source) ? "FILE.tsv, pairs:SOURCES:TARGETS, reversed:TEXT, synthetic:dates"
                                    : "FILE.txt, the PREFIX of token files, synthetic:arithmetic";
}

/// Refuses what makes samples of another kind than those that the model reads: `field` says of which.
void require_wanted(const Opening& how, std::string_view field, const std::string& path) {
  MP_REQUIRE(how.wants(field), Exit::bad_configuration,
             "data.{}[{}]: {} holds {}, and the model {}; name a source of its own kind ({})",
             name_of(how.subset), how.number, path, kind_of_source(field), what_it_does(how), what_fits(how));
}

/// Refuses `synthetic:` with a name that says nothing.
void require_known(const std::string& path, const Opening& how) {
  MP_REQUIRE(!path.starts_with(synthetic) || path == "synthetic:arithmetic" || path == "synthetic:dates" ||
                 path == "synthetic:shapes",
             Exit::bad_configuration,
             "data.{}: {} is nothing that the program can make; it makes synthetic:arithmetic (texts), "
             "synthetic:dates (pairs) and synthetic:shapes (pictures)",
             name_of(how.subset), path);
}

/// Opens a pair of token files, which the run's tokenizer must have made.
std::unique_ptr<TokenFile> open_tokens(const std::string& path, const Opening& how, std::int64_t vocabulary) {
  const std::string prefix = TokenFile::prefix_of(path);
  auto file = std::make_unique<TokenFile>(prefix, vocabulary);
  AnswerMask::of(*file, prefix);  // refuses a pair whose mask was lost
  const ByteTokenizer bytes;
  const Tokenizer& tokenizer = how.tokenizer != nullptr ? *how.tokenizer : bytes;
  require_tokens_of(prefix, tokenizer.name(), hash_of(tokenizer));
  return file;
}

/// The answers of conversations, where a path names a pair with a mask, or nothing.
std::unique_ptr<Dataset> find_answers(const std::string& path, const Opening& how) {
  const std::string prefix = TokenFile::prefix_of(path);
  std::error_code none;
  if (path.ends_with(".txt") || !std::filesystem::exists(prefix + ".mask", none)) return nullptr;
  MP_REQUIRE(!how.wants(field::picked), Exit::bad_configuration,
             "data.{}[{}]: {} holds conversations, of which answers count, and the model masks tokens of "
             "texts; name "
             "a source of its own kind ({})",
             name_of(how.subset), how.number, path, what_fits(how));
  const Field& tokens = how.field(field::tokens);
  auto file = open_tokens(path, how, tokens.below);
  auto mask = AnswerMask::of(*file, prefix);
  return std::make_unique<AnswersDataset>(std::move(file), std::move(*mask), tokens.shape[0], how.order());
}

std::unique_ptr<Documents> open_documents(const std::string& path, const Opening& how,
                                          std::int64_t vocabulary) {
  if (path.ends_with(".txt") && how.tokenizer != nullptr)
    return std::make_unique<TokenizedText>(path, how.subset, *how.tokenizer);
  if (path.ends_with(".txt")) return std::make_unique<TextFile>(path, how.subset, vocabulary);
  return open_tokens(path, how, vocabulary);
}

/// `around`: how many tokens of a sample are not the text's.
std::unique_ptr<TextDataset> open_texts(const std::string& path, const Opening& how,
                                        std::int64_t around = 0) {
  const Field& tokens = how.field(field::tokens);
  const std::int64_t sequence = tokens.shape[0] - around, vocabulary = tokens.below;
  MP_REQUIRE(sequence > 0, Exit::bad_configuration,
             "data.sequence is {}, and the tokenizer's template takes {} tokens of it; make it longer",
             tokens.shape[0], around);
  if (path.starts_with(synthetic)) how.require_bytes(path);
  if (path.starts_with(synthetic))
    return std::make_unique<ArithmeticDataset>(how.seed, how.subset, sequence, vocabulary);
  return std::make_unique<DocumentDataset>(open_documents(path, how, vocabulary), sequence, how.order(),
                                           how.trains() ? how.planned : 0, how.orders);
}

/// What says that a path names pairs, or nothing.
std::unique_ptr<Pairs> find_pairs(const std::string& path, const Opening& how) {
  if (path == "synthetic:dates") how.require_bytes(path);
  if (path == "synthetic:dates") return std::make_unique<Dates>(how.seed, how.subset);
  if (!path.starts_with(pairs)) {
    if (path.starts_with(reversed) || !path.ends_with(".tsv")) return nullptr;
    require_wanted(how, field::source, path);
    return std::make_unique<TabbedText>(path, how.subset, how.tokenizer);
  }
  const std::string both = path.substr(pairs.size());
  const std::size_t between = both.find(':');
  MP_REQUIRE(between != std::string::npos, Exit::bad_configuration,
             "data.{}: {} names one file; write pairs:SOURCES:TARGETS", name_of(how.subset), path);
  require_wanted(how, field::source, path);
  const std::string files[] = {both.substr(0, between), both.substr(between + 1)};
  for (const std::string& file : files)
    MP_REQUIRE(!file.ends_with(".txt") && !file.ends_with(".tsv"), Exit::bad_configuration,
               "data.{}: {} names a text, which is one document; pairs of lines stand in a .tsv file, and "
               "mindpipe-train data import --format paragraphs makes documents of a text",
               name_of(how.subset), path);
  return std::make_unique<DocumentPairs>(open_documents(files[0], how, how.field(field::source).below),
                                         open_documents(files[1], how, how.field(field::tokens).below));
}

std::unique_ptr<Dataset> open_pairs(std::unique_ptr<Pairs> found, const std::string& path,
                                    const Opening& how) {
  require_wanted(how, field::source, path);
  const SpecialTokens& special = how.data.special;
  const std::int64_t vocabulary = how.field(field::tokens).below;
  const int largest = std::max({special.end, special.start, special.padding});
  MP_REQUIRE(largest < vocabulary, Exit::bad_configuration,
             "data.{}: {} makes pairs, whose end, start and padding are the tokens {}, {} and {}, and "
             "model.vocabulary is {}; set it to {} or more",
             name_of(how.subset), path, special.end, special.start, special.padding, vocabulary, largest + 1);
  const std::int32_t byte = found->largest_byte();
  MP_REQUIRE(
      byte < vocabulary, Exit::bad_configuration,
      "data.{}: {} has the byte {}, which is a token, and model.vocabulary is {}; set it to {} or more",
      name_of(how.subset), path, byte, vocabulary, byte + 1);
  return std::make_unique<PairDataset>(std::move(found), how.field(field::source).shape[0],
                                       how.field(field::tokens).shape[0], special, how.order());
}

/// What says that a path names pictures, or nothing.
std::unique_ptr<Pictures> find_pictures(const std::string& path, const Opening& how) {
  if (path == "synthetic:shapes")
    return std::make_unique<Shapes>(how.seed, how.subset,
                                    how.wants(field::picture) ? how.field(field::picture).planes : 1);
  const bool is_file =
      path.starts_with(cifar10) || path.starts_with(cifar100) || IdxPictures::is_named_so(path);
  if (is_file) require_wanted(how, field::picture, path);  // before anything is unpacked
  if (path.starts_with(cifar10)) return std::make_unique<CifarPictures>(path.substr(cifar10.size()), 1);
  if (path.starts_with(cifar100)) return std::make_unique<CifarPictures>(path.substr(cifar100.size()), 2);
  if (IdxPictures::is_named_so(path)) return std::make_unique<IdxPictures>(path);
  return nullptr;
}

std::unique_ptr<Dataset> open_pictures(std::unique_ptr<Pictures> found, const std::string& path,
                                       const Opening& how) {
  require_wanted(how, field::picture, path);
  const Field& wanted = how.field(field::picture);
  const std::int64_t height = wanted.shape[0] / wanted.planes, width = wanted.shape[1];
  const PictureSize size = found->size();
  MP_REQUIRE(
      size.channels == wanted.planes && size.height == height && size.width == width, Exit::bad_configuration,
      "data.{}[{}]: pictures of {} have {} x {} x {} numbers (channels, rows, pixels of a row), and the "
      "model reads {} x {} x {}; set model.channels, model.picture_height and model.picture_width to {}, {} "
      "and {}",
      name_of(how.subset), how.number, path, size.channels, size.height, size.width, wanted.planes, height,
      width, size.channels, size.height, size.width);
  return std::make_unique<PictureDataset>(std::move(found), how.data, how.field(field::targets).below,
                                          how.seed, how.subset);
}

/// Texts with holes, each within the tokenizer's template.
std::unique_ptr<Dataset> open_masked(const std::string& texts, const Opening& how) {
  constexpr TokenId text = -1;
  std::vector<TokenId> within{text};
  if (how.tokenizer != nullptr) within = how.tokenizer->with_template(within).ids;
  const auto at = std::find(within.begin(), within.end(), text);
  MP_CHECK(at != within.end(), "a template without its text");
  return std::make_unique<MaskedDataset>(
      open_texts(texts, how, std::ssize(within) - 1), how.data.special, how.field(field::tokens).below,
      how.seed, std::vector<TokenId>(within.begin(), at), std::vector<TokenId>(at + 1, within.end()));
}

std::unique_ptr<Dataset> open_source(const std::string& path, const Opening& how) {
  if (auto found = find_pairs(path, how)) return open_pairs(std::move(found), path, how);
  if (auto found = find_pictures(path, how)) return open_pictures(std::move(found), path, how);
  const bool turns = path.starts_with(reversed);
  if (turns) require_wanted(how, field::source, path);
  const std::string texts = turns ? path.substr(reversed.size()) : path;
  require_known(texts, how);
  MP_REQUIRE(!turns || !find_pairs(texts, how), Exit::bad_configuration,
             "data.{}: {} turns texts around, and {} holds pairs already; name it without {}",
             name_of(how.subset), path, texts, reversed);
  if (turns && find_pictures(texts, how)) require_wanted(how, field::picture, texts);
  require_wanted(how, field::tokens, path);
  if (turns)
    return std::make_unique<ReversedDataset>(open_texts(texts, how), how.field(field::source).shape[0]);
  if (auto answers = find_answers(texts, how)) return answers;
  if (how.wants(field::picked)) return open_masked(texts, how);
  return open_texts(texts, how);
}

/// Refuses a source whose samples lack a field that the model reads.
void require_fields(const Dataset& dataset, const DataSource& source, const Opening& how) {
  const std::vector<std::string_view> given = dataset.gives();
  for (const Field& field : how.fields)
    MP_REQUIRE(std::find(given.begin(), given.end(), field.name) != given.end(), Exit::bad_configuration,
               "data.{}[{}]: {} holds {}, and the model {}: samples have {} and no {}; name a source of its "
               "own kind{}",
               name_of(how.subset), how.number, source.path, kind_of_source(given[0]), what_it_does(how),
               fmt::join(given, ", "), field.name,
               field.name == field::source ? ", or reversed:" + source.path : "");
}
}  // namespace

SourceFiles files_of_source(const std::string& path) {
  if (path.starts_with(synthetic)) return {path, {}};
  for (const std::string_view scheme : {cifar10, cifar100})
    if (path.starts_with(scheme)) return {std::string(scheme), {path.substr(scheme.size())}};
  if (path.starts_with(reversed)) {
    SourceFiles turned = files_of_source(path.substr(reversed.size()));
    turned.how.insert(0, reversed);
    return turned;
  }
  if (path.starts_with(pairs)) {
    SourceFiles both{std::string(pairs), {}};
    std::istringstream names(path.substr(pairs.size()));
    for (std::string name; std::getline(names, name, ':');)
      for (std::string& file : files_of_source(name).files) both.files.push_back(std::move(file));
    return both;
  }
  if (IdxPictures::is_named_so(path)) return {"", {path, IdxPictures::labels_of(path)}};
  if (path.ends_with(".txt") || path.ends_with(".tsv")) return {"", {path}};
  const std::string prefix = TokenFile::prefix_of(path);
  SourceFiles tokens{"", {prefix + ".bin", prefix + ".idx"}};
  std::error_code none;
  if (std::filesystem::exists(prefix + ".mask", none)) tokens.files.push_back(prefix + ".mask");
  return tokens;
}

Corpus::Corpus(const DataConfig& data, Subset subset, const std::vector<Field>& fields, std::uint64_t seed,
               std::int64_t planned, const std::string& orders)
    : tokenizer_(data.tokenizer.empty() || data.tokenizer == ByteTokenizer::word ? nullptr
                                                                                 : open_tokenizer(data)),
      blend_(checked_weights(data, subset)) {
  const std::vector<double>& shares = blend_.shares();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto wanted = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(planned) * shares[i] * (shares.size() > 1 ? 1.005 : 1.0)));
    const DataSource& source = sources_of(data, subset)[i];
    const Opening how{data, subset, fields, seed, wanted, i, orders, tokenizer_.get()};
    datasets_.push_back(open_source(source.path, how));
    require_fields(*datasets_.back(), source, how);
  }
}

Corpus Corpus::once(const DataConfig& data, Subset subset, const std::vector<Field>& fields,
                    std::uint64_t seed, const std::string& orders) {
  Corpus corpus(data, subset, fields, seed, 0, orders);
  for (std::size_t i = 0; i < corpus.datasets_.size(); ++i) {
    const std::int64_t count = corpus.datasets_[i]->count();
    MP_REQUIRE(
        count > 0, Exit::bad_configuration,
        "data.{}: {} has no end, so an evaluation cannot go over all of it; set train.evaluate_batches "
        "to a number of batches",
        name_of(subset), sources_of(data, subset)[i].path);
    corpus.ends_.push_back(corpus.samples() + count);
  }
  return corpus;
}

void Corpus::sample(std::int64_t number, const FieldTensors& to) {
  if (ends_.empty()) {
    const auto [dataset, index] = blend_.at(number);
    datasets_[dataset]->sample(index, to);
    return;
  }
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), number);
  if (end != ends_.end()) {
    const std::int64_t begin = end == ends_.begin() ? 0 : *std::prev(end);
    datasets_[static_cast<std::size_t>(end - ends_.begin())]->sample(number - begin, to);
    return;
  }
  datasets_[0]->sample(0, to);  // anything that a model can read
  if (const Tensor targets = to.find(field::targets))
    std::fill_n(targets.as<std::int32_t>(), targets.count(), -1);
}

void Corpus::batch(std::int64_t first_sample, const FieldTensors& to) {
  MP_CHECK(!to.entries().empty(), "a batch without fields");
  const std::int64_t samples = to.entries()[0].tensor.shape[0];
  MP_CHECK(first_sample >= 0 && first_sample <= std::numeric_limits<std::int64_t>::max() - samples,
           "samples from {}", first_sample);
  for (std::int64_t s = 0; s < samples; ++s) sample(first_sample + s, to.part(s));
}

std::vector<std::string> Corpus::describe() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < datasets_.size(); ++i)
    lines.push_back(
        ends_.empty() ? fmt::format("{:5.1f} % {}", 100 * blend_.shares()[i], datasets_[i]->describe())
                      : fmt::format("all {} samples of {}", datasets_[i]->count(), datasets_[i]->describe()));
  return lines;
}

}  // namespace mindpipe
