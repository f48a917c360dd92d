#include "corpus/arithmetic.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/random.h"

namespace mindpipe {

std::string in_words(int number) {
  static constexpr std::array below_twenty{"zero",    "one",     "two",       "three",    "four",
                                           "five",    "six",     "seven",     "eight",    "nine",
                                           "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                           "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::array tens{"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};
  MP_CHECK(number >= 0 && number < 1000, "{} in words", number);
  if (number < 20) return below_twenty[number];
  const std::string largest =
      number < 100 ? tens[number / 10] : fmt::format("{} hundred", below_twenty[number / 100]);
  const int rest = number < 100 ? number % 10 : number % 100;
  return rest == 0 ? largest : fmt::format("{} {}", largest, in_words(rest));
}

SumsInWords::SumsInWords(std::uint64_t seed, Subset subset)
    : seed_(seed),
      purpose_(
          purpose_of(subset == Subset::train ? "corpus.arithmetic.train" : "corpus.arithmetic.validation")) {}

std::string SumsInWords::line(std::int64_t document, std::int64_t line) const {
  const RandomStream stream{seed_, purpose_, static_cast<std::uint32_t>(document >> 32),
                            static_cast<std::uint32_t>(document)};
  const auto words = stream.words(static_cast<std::uint64_t>(line));
  const auto below = [&](int word, std::uint64_t n) { return static_cast<int>(words[word] * n >> 32); };
  const auto sentence = [](int a, const char* what, int b, int result) {
    return fmt::format("{} {} {} is {}.\n", in_words(a), what, in_words(b), in_words(result));
  };
  switch (below(0, 4)) {
    case 0: {
      const int a = below(1, 100), b = below(2, 100);
      return sentence(a, "plus", b, a + b);
    }
    case 1: {
      const int a = below(1, 100), b = below(2, static_cast<std::uint64_t>(a) + 1);
      return sentence(a, "minus", b, a - b);
    }
    case 2: {
      const int a = below(1, 13), b = below(2, 13);
      return sentence(a, "times", b, a * b);
    }
    default: {
      const int a = below(1, 100), b = below(2, 100);
      return fmt::format("{} is {} {}.\n", in_words(a),
                         a > b   ? "more than"
                         : a < b ? "less than"
                                 : "the same as",
                         in_words(b));
    }
  }
}

ArithmeticDataset::ArithmeticDataset(std::uint64_t seed, Subset subset, std::int64_t sequence,
                                     std::int64_t vocabulary)
    : TextDataset(sequence), arithmetic_(seed, subset), subset_(subset) {
  MP_REQUIRE(vocabulary > 'z', Exit::bad_configuration,
             "model.vocabulary is {} (synthetic:arithmetic is written in bytes up to {}); set it to 256",
             vocabulary, int{'z'});
}

void ArithmeticDataset::text(std::int64_t index, std::int32_t* tokens) {
  for (std::int64_t done = 0, next = 0; done < sequence() + 1; ++next) {
    const std::string line = arithmetic_.line(index, next);
    const std::int64_t take =
        std::min<std::int64_t>(static_cast<std::int64_t>(line.size()), sequence() + 1 - done);
    for (std::int64_t i = 0; i < take; ++i) tokens[done + i] = static_cast<unsigned char>(line[i]);
    done += take;
  }
}

std::string ArithmeticDataset::describe() const {
  return fmt::format("synthetic:arithmetic: {} sums in words, without end", name_of(subset_));
}

}  // namespace mindpipe
