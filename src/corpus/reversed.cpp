#include "corpus/reversed.h"

#include <algorithm>

namespace mindpipe {

ReversedDataset::ReversedDataset(std::unique_ptr<TextDataset> texts, std::int64_t source_sequence)
    : texts_(std::move(texts)), source_sequence_(source_sequence), text_(texts_->sequence() + 1) {}

void ReversedDataset::sample(std::int64_t index, const FieldTensors& to) {
  const std::int64_t length = texts_->sequence();
  texts_->text(index, text_.data());
  const Tensor source = to.find(field::source), lengths = to.find(field::source_lengths),
               tokens = to.find(field::tokens), targets = to.find(field::targets);
  for (std::int64_t i = 0; source && i < source_sequence_; ++i)
    source.as<std::int32_t>()[i] = i < length ? text_[length - 1 - i] : 0;
  if (lengths)
    *lengths.as<std::int32_t>() =
        static_cast<std::int32_t>(std::min(source_sequence_, length - index % (length / 2 + 1)));
  if (tokens) std::copy_n(text_.data(), length, tokens.as<std::int32_t>());
  if (targets) std::copy_n(text_.data() + 1, length, targets.as<std::int32_t>());
}

}  // namespace mindpipe
