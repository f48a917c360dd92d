#pragma once
#include <cstdint>
#include <string>

#include "corpus/dataset.h"
#include "corpus/text_file.h"

namespace mindpipe {

/// Text of a number from 0 to 999 in words: "one hundred forty four".
std::string in_words(int number);

/// Sums in words, as many as one likes: "twenty seven plus fifteen is forty two." A document is a list of
/// lines without end; line `line` of document `document` is a function of them, the seed and the subset.
class SumsInWords {
 public:
  SumsInWords(std::uint64_t seed, Subset subset);
  std::string line(std::int64_t document, std::int64_t line) const;  ///< ends in a newline

 private:
  std::uint64_t seed_, purpose_;
};

/// Samples of sums in words: sample i is the first sequence + 1 bytes of document i.
class ArithmeticDataset : public TextDataset {
 public:
  ArithmeticDataset(std::uint64_t seed, Subset subset, std::int64_t sequence, std::int64_t vocabulary);
  std::int64_t count() const override { return 0; }
  void text(std::int64_t index, std::int32_t* tokens) override;
  std::string describe() const override;

 private:
  SumsInWords arithmetic_;
  Subset subset_;
};

}  // namespace mindpipe
