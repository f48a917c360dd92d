#include "corpus/pairs.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/random.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

std::vector<std::int32_t> read_document(const Documents& documents, std::int64_t index) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(documents.length(index)));
  documents.read(index, 0, documents.length(index), tokens.data());
  return tokens;
}

}  // namespace

PairDataset::PairDataset(std::unique_ptr<Pairs> pairs, std::int64_t source_sequence,
                         std::int64_t target_sequence, const SpecialTokens& special,
                         std::optional<std::uint64_t> seed)
    : pairs_(std::move(pairs)),
      source_sequence_(source_sequence),
      target_sequence_(target_sequence),
      special_(special),
      rounds_(pairs_->count(), seed) {}

void PairDataset::sample(std::int64_t index, const FieldTensors& to) {
  TextPair pair = pairs_->pair(rounds_.count() == 0 ? index : rounds_.at(index));
  pair.source.push_back(special_.end);
  pair.target.push_back(special_.end);
  const auto source = to.find(field::source), lengths = to.find(field::source_lengths),
             tokens = to.find(field::tokens), targets = to.find(field::targets);
  const auto length = std::min<std::int64_t>(static_cast<std::int64_t>(pair.source.size()), source_sequence_),
             written =
                 std::min<std::int64_t>(static_cast<std::int64_t>(pair.target.size()), target_sequence_);
  const auto put = [&](const Tensor& field, const std::vector<std::int32_t>& ids, std::int64_t count,
                       std::int64_t first, std::int32_t rest) {
    if (!field) return;
    auto* const out = field.as<std::int32_t>();
    std::copy_n(ids.begin(), count, out + first);
    std::fill(out + first + count, out + field.shape[0], rest);
  };
  put(source, pair.source, length, 0, special_.padding);
  put(targets, pair.target, written, 0, -1);
  put(tokens, pair.target, written - 1, 1, special_.padding);
  if (tokens) *tokens.as<std::int32_t>() = special_.start;
  if (lengths) *lengths.as<std::int32_t>() = static_cast<std::int32_t>(length);
}

std::string PairDataset::describe() const {
  return rounds_.count() == 0 ? pairs_->name() : fmt::format("{}, {} pairs", pairs_->name(), rounds_.count());
}

Dates::Dates(std::uint64_t seed, Subset subset) : seed_(seed), subset_(subset) {}

std::string Dates::written(int form, int year, int month, int day) {
  static constexpr const char* names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
  const std::string name = names[month - 1], brief = name.substr(0, 3);
  const char* const ending = day % 10 == 1 && day != 11   ? "st"
                             : day % 10 == 2 && day != 12 ? "nd"
                             : day % 10 == 3 && day != 13 ? "rd"
                                                          : "th";
  switch (form) {
    case 0:
      return fmt::format("{} {} {}", day, name, year);
    case 1:
      return fmt::format("{} {}, {}", name, day, year);
    case 2:
      return fmt::format("{}/{}/{}", month, day, year);
    case 3:
      return fmt::format("{}.{}.{}", day, month, year);
    case 4:
      return fmt::format("{:02}.{:02}.{:02}", day, month, year % 100);
    case 5:
      return fmt::format("{} {} {}", day, brief, year);
    case 6:
      return fmt::format("{} {:02} '{:02}", brief, day, year % 100);
    case 7:
      return fmt::format("{}{:02}{:02}", year, month, day);
    case 8:
      return fmt::format("the {}{} of {} {}", day, ending, name, year);
    case 9:
      return fmt::format("{} {}{}, {}", name, day, ending, year);
    case 10:
      return fmt::format("{}/{:02}/{:02}", year, month, day);
    default:
      return fmt::format("{:02}-{}-{}", day, brief, year);
  }
}

TextPair Dates::pair(std::int64_t index) const {
  const RandomStream stream{
      seed_, purpose_of(subset_ == Subset::train ? "corpus.dates.train" : "corpus.dates.validation"),
      static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(index)};
  const auto words = stream.words(0);
  const auto below = [&](int word, std::uint64_t n) { return static_cast<int>(words[word] * n >> 32); };
  static constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int form = below(0, forms), month = below(2, 12) + 1;
  // Years that two digits say are those of one century.
  const int year = form == 4 || form == 6 ? 2000 + below(1, 100) : 1900 + below(1, 200);
  const bool leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int day = below(3, static_cast<std::uint64_t>(days[month - 1] + (month == 2 && leaps ? 1 : 0))) + 1;
  return {ByteTokenizer::ids_of(written(form, year, month, day)),
          ByteTokenizer::ids_of(fmt::format("{:04}-{:02}-{:02}", year, month, day))};
}

std::string Dates::name() const { return fmt::format("synthetic:dates ({})", name_of(subset_)); }

TabbedText::TabbedText(const std::string& path, Subset subset, const Tokenizer* tokenizer)
    : file_(path), subset_(subset), encoder_(tokenizer == nullptr ? nullptr : tokenizer->encoder()) {
  file_.require_written();
  const auto* const text = reinterpret_cast<const char*>(file_.data());
  std::int64_t number = 1;
  for (std::int64_t begin = 0; begin < file_.size(); ++number) {
    const void* const found = std::memchr(text + begin, '\n', static_cast<std::size_t>(file_.size() - begin));
    const std::int64_t next = found ? static_cast<const char*>(found) - text + 1 : file_.size(),
                       line = next - (found ? 1 : 0),
                       end = line > begin && text[line - 1] == '\r' ? line - 1 : line;  // of two bytes there
    const void* const tab = std::memchr(text + begin, '\t', static_cast<std::size_t>(end - begin));
    MP_REQUIRE(tab || end == begin, Exit::bad_data,
               "{}:{}: there is no tab (a line is a source, a tab, and its target)", path, number);
    if (tab) lines_.push_back({begin, static_cast<const char*>(tab) - text, end});
    begin = next;
  }
  const auto all = static_cast<std::int64_t>(lines_.size()),
             split = all - std::max<std::int64_t>(1, all / 10);
  MP_REQUIRE(all >= 2, Exit::bad_data, "{}: {} pairs (one to train on and one to hold out are the least)",
             path, all);
  if (subset == Subset::train) lines_.resize(static_cast<std::size_t>(split));
  else lines_.erase(lines_.begin(), lines_.begin() + split);
}

TextPair TabbedText::pair(std::int64_t index) const {
  const Line& line = lines_[index];
  const auto text = [&](std::int64_t begin, std::int64_t end) {
    const std::string_view part(reinterpret_cast<const char*>(file_.data()) + begin,
                                static_cast<std::size_t>(end - begin));
    return encoder_ ? encoder_->encode(part, SpecialText::plain) : ByteTokenizer::ids_of(part);
  };
  return {text(line.begin, line.tab), text(line.tab + 1, line.end)};
}

std::string TabbedText::name() const {
  return fmt::format("{} ({} % of its lines)", file_.path(),
                     subset_ == Subset::train ? "the first 90" : "the last 10");
}

std::int32_t TabbedText::largest_byte() const {
  if (encoder_) return 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(file_.data());
  return *std::max_element(bytes, bytes + file_.size());
}

DocumentPairs::DocumentPairs(std::unique_ptr<Documents> sources, std::unique_ptr<Documents> targets)
    : sources_(std::move(sources)), targets_(std::move(targets)) {
  MP_REQUIRE(sources_->count() == targets_->count() && sources_->count() > 0, Exit::bad_data,
             "{} has {} documents and {} {} (a pair is a document of each)", sources_->name(),
             sources_->count(), targets_->name(), targets_->count());
}

TextPair DocumentPairs::pair(std::int64_t index) const {
  return {read_document(*sources_, index), read_document(*targets_, index)};
}

std::string DocumentPairs::name() const {
  return fmt::format("{} and {}", sources_->name(), targets_->name());
}

}  // namespace mindpipe
