#include "corpus/masked.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/random.h"

namespace mindpipe {
namespace {

/// Whether a random word lies in the lowest share of all.
bool within(std::uint32_t word, double share) { return word < share * 4294967296.0; }

}  // namespace

MaskedDataset::MaskedDataset(std::unique_ptr<TextDataset> texts, const SpecialTokens& special,
                             std::int64_t vocabulary, std::uint64_t seed, std::vector<std::int32_t> before,
                             std::vector<std::int32_t> behind)
    : texts_(std::move(texts)),
      special_(special),
      vocabulary_(vocabulary),
      seed_(seed),
      before_(std::move(before)),
      behind_(std::move(behind)),
      text_(before_.size() + static_cast<std::size_t>(texts_->sequence()) +
            std::max<std::size_t>(1, behind_.size())) {
  MP_REQUIRE(special.mask < vocabulary, Exit::bad_configuration,
             "data.special.mask is {} and model.vocabulary {} (the mask is a token of the vocabulary)",
             special.mask, vocabulary);
  MP_REQUIRE(special.padding < vocabulary, Exit::bad_configuration,
             "data.special.padding is {} and model.vocabulary {} (padding is a token of the vocabulary)",
             special.padding, vocabulary);
}

bool MaskedDataset::is_ordinary(std::int32_t token) const {
  return token != special_.end && token != special_.start && token != special_.padding &&
         token != special_.mask;
}

void MaskedDataset::sample(std::int64_t index, const FieldTensors& to) {
  const RandomStream stream{seed_, purpose_of("corpus.masked"), static_cast<std::uint32_t>(index >> 32),
                            static_cast<std::uint32_t>(index)};
  const std::int64_t begin = std::ssize(before_), end = begin + texts_->sequence(),
                     length = end + std::ssize(behind_);
  texts_->text(index, text_.data() + begin);
  std::copy(before_.begin(), before_.end(), text_.begin());
  std::copy(behind_.begin(), behind_.end(), text_.begin() + end);
  // The four words of a row: whether it is picked, its place among too many, what becomes of it, another
  // token.
  picked_.clear();
  for (std::int64_t row = begin; row < end; ++row)
    if (is_ordinary(text_[row]) && within(stream.words(static_cast<std::uint64_t>(row))[0], 0.15))
      picked_.push_back(row);
  const Tensor picked = to.find(field::picked), targets = to.find(field::targets),
               tokens = to.find(field::tokens);
  const Tensor& any = picked ? picked : targets;
  const std::int64_t most = any ? any.shape[0] : length;
  if (static_cast<std::int64_t>(picked_.size()) > most) {
    const auto place = [&](std::int64_t row) { return stream.words(static_cast<std::uint64_t>(row))[1]; };
    std::sort(picked_.begin(), picked_.end(), [&](std::int64_t a, std::int64_t b) {
      return std::pair(place(a), a) < std::pair(place(b), b);
    });
    picked_.resize(static_cast<std::size_t>(most));
    std::sort(picked_.begin(), picked_.end());
  }
  for (std::int64_t i = 0; i < most; ++i) {
    const bool is = i < static_cast<std::int64_t>(picked_.size());
    if (picked) picked.as<std::int32_t>()[i] = is ? static_cast<std::int32_t>(picked_[i]) : -1;
    if (targets) targets.as<std::int32_t>()[i] = is ? text_[picked_[i]] : -1;
  }
  if (!tokens) return;
  for (const std::int64_t row : picked_) {
    const auto words = stream.words(static_cast<std::uint64_t>(row));
    if (within(words[2], 0.8)) text_[row] = special_.mask;
    else if (within(words[2], 0.9)) text_[row] = drawn(words[3]);
  }
  std::copy_n(text_.data(), length, tokens.as<std::int32_t>());
}

/// An ordinary token.
std::int32_t MaskedDataset::drawn(std::uint32_t word) const {
  std::array<std::int32_t, 4> special{special_.end, special_.start, special_.padding, special_.mask};
  std::sort(special.begin(), special.end());
  const auto last = std::unique(special.begin(), special.end());  // one id may stand for two of them
  const auto below = std::lower_bound(special.begin(), last, vocabulary_) - special.begin();
  auto token = static_cast<std::int32_t>(word * static_cast<std::uint64_t>(vocabulary_ - below) >> 32);
  std::for_each(special.begin(), last, [&](std::int32_t id) { token += id <= token ? 1 : 0; });
  return token;
}

}  // namespace mindpipe
