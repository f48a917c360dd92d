#include "corpus/answers.h"

#include <algorithm>
#include <filesystem>

#include "core/check.h"
#include "corpus/token_origin.h"

namespace mindpipe {

std::optional<AnswerMask> AnswerMask::of(const TokenFile& tokens, const std::string& prefix) {
  const std::string path = prefix + ".mask";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    require_no_mask(prefix);
    return std::nullopt;
  }
  AnswerMask mask(path);
  MP_REQUIRE(
      mask.file_.size() == tokens.tokens(), Exit::bad_data,
      "{}: the file has {} bytes (expected {}, one for each token of {}); import the conversations again",
      path, mask.file_.size(), tokens.tokens(), tokens.name());
  return mask;
}

void AnswerMask::require_no_mask(const std::string& prefix) {
  const std::optional<TokenOrigin> origin = read_origin(prefix);
  MP_REQUIRE(
      !origin || origin->counted < 0, Exit::bad_data,
      "{}.mask is missing, and {}.json says that {} of {} tokens count (the answers'); bring the file back, "
      "or import the conversations again",
      prefix, prefix, origin->counted, origin->tokens);
}

AnswersDataset::AnswersDataset(std::unique_ptr<TokenFile> tokens, AnswerMask mask, std::int64_t sequence,
                               std::optional<std::uint64_t> seed)
    : tokens_(std::move(tokens)),
      mask_(std::move(mask)),
      sequence_(sequence),
      rounds_(tokens_->count(), seed),
      text_(static_cast<std::size_t>(sequence + 1)) {
  MP_REQUIRE(tokens_->count() > 0, Exit::bad_data, "{}: the file has no conversation; name one that has some",
             tokens_->name());
}

void AnswersDataset::sample(std::int64_t index, const FieldTensors& to) {
  const std::int64_t document = rounds_.at(index), length = tokens_->length(document),
                     kept = std::min(length, sequence_ + 1), first = tokens_->first_token(document);
  MP_REQUIRE(first + length <= std::ssize(mask_.counts()), Exit::bad_data,
             "{}: document {} ends behind the last token that its mask knows; import the conversations again",
             tokens_->name(), document);
  std::fill(text_.begin(), text_.end(), 0);  // behind the text, where nothing counts and nothing is read
  tokens_->read(document, 0, kept, text_.data());
  const std::span<const std::uint8_t> counts =
      mask_.counts().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
  std::int64_t whole = kept;  // what is behind belongs to an answer that is cut
  if (kept < length && counts[kept] != 0)
    while (whole > 0 && counts[whole - 1] != 0) --whole;
  const Tensor tokens = to.find(field::tokens), targets = to.find(field::targets);
  if (tokens) std::copy_n(text_.data(), sequence_, tokens.as<std::int32_t>());
  if (!targets) return;
  for (std::int64_t row = 0; row < sequence_; ++row)
    targets.as<std::int32_t>()[row] = row + 1 < whole && counts[row + 1] != 0 ? text_[row + 1] : -1;
}

std::string AnswersDataset::describe() const {
  const auto counted = std::count(mask_.counts().begin(), mask_.counts().end(), 1);
  return fmt::format("{}: {} conversations of {} tokens, of which {} count", tokens_->name(),
                     tokens_->count(), tokens_->tokens(), counted);
}

}  // namespace mindpipe
