#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/sections/data.h"
#include "corpus/dataset.h"
#include "corpus/rounds.h"
#include "corpus/text_file.h"

namespace mindpipe {

/// Pairs of texts in tokens: what is read, and what is to be written of it.
struct TextPair {
  std::vector<std::int32_t> source, target;
};
class Pairs {
 public:
  virtual ~Pairs() = default;
  /// How many there are; 0: they have no end.
  virtual std::int64_t count() const = 0;
  virtual TextPair pair(std::int64_t index) const = 0;
  virtual std::string name() const = 0;
  /// The largest token, where tokens are bytes that nobody compares with the vocabulary when they are read.
  virtual std::int32_t largest_byte() const { return 0; }
};

/// Samples of pairs. A source ends in the end's token; a target is read from the token of the start on, and
/// its last target is the end. What is too long is cut, what is shorter is padded on the right: the source's
/// length says so, and in a target's padding nothing counts.
class PairDataset final : public Dataset {
 public:
  PairDataset(std::unique_ptr<Pairs> pairs, std::int64_t source_sequence, std::int64_t target_sequence,
              const SpecialTokens& special, std::optional<std::uint64_t> seed);
  std::vector<std::string_view> gives() const override {
    return {field::source, field::source_lengths, field::tokens, field::targets};
  }
  std::int64_t count() const override { return rounds_.count(); }
  void sample(std::int64_t index, const FieldTensors& to) override;
  std::string describe() const override;

 private:
  std::unique_ptr<Pairs> pairs_;
  std::int64_t source_sequence_, target_sequence_;
  SpecialTokens special_;
  Rounds rounds_;
};

/// Dates in a dozen forms, and as ISO writes them: "5 March 2024", "2024-03-05". One token a byte.
class Dates final : public Pairs {
 public:
  Dates(std::uint64_t seed, Subset subset);
  std::int64_t count() const override { return 0; }
  TextPair pair(std::int64_t index) const override;
  std::string name() const override;
  std::int32_t largest_byte() const override { return 'y'; }
  static constexpr int forms = 12;
  /// A day from 1900 on in one of the forms.
  static std::string written(int form, int year, int month, int day);

 private:
  std::uint64_t seed_;
  Subset subset_;
};

/// Lines of a text, source and target apart by a tab; without a tokenizer one token a byte. Training reads
/// the first 90 % of the lines, validation the rest.
class TabbedText final : public Pairs {
 public:
  TabbedText(const std::string& path, Subset subset, const Tokenizer* tokenizer = nullptr);
  std::int64_t count() const override { return static_cast<std::int64_t>(lines_.size()); }
  TextPair pair(std::int64_t index) const override;
  std::string name() const override;
  std::int32_t largest_byte() const override;

 private:
  MappedFile file_;
  Subset subset_;
  std::unique_ptr<Encoder> encoder_;  ///< none: bytes
  struct Line {
    std::int64_t begin = 0, tab = 0, end = 0;
  };
  std::vector<Line> lines_;
};

/// Documents of two files, each with that of the same number.
class DocumentPairs final : public Pairs {
 public:
  DocumentPairs(std::unique_ptr<Documents> sources, std::unique_ptr<Documents> targets);
  std::int64_t count() const override { return sources_->count(); }
  TextPair pair(std::int64_t index) const override;
  std::string name() const override;

 private:
  std::unique_ptr<Documents> sources_, targets_;
};

}  // namespace mindpipe
