#pragma once
#include <memory>
#include <vector>

#include "config/sections/data.h"
#include "corpus/dataset.h"

namespace mindpipe {

/// Texts with holes. Of the ordinary tokens of a sample each is picked with 15 %, at most as many as the
/// field of picked rows has; of those 80 % are masked, 10 % are another token drawn at random, 10 % stay.
/// What is picked is a function of the seed and the sample. Places that nothing is picked for have no row
/// (-1) and no target.
class MaskedDataset final : public Dataset {
 public:
  /// `vocabulary`: ids that a token drawn at random is below.
  /// `before` and `behind` stand around the text of every sample, as a tokenizer's template says.
  MaskedDataset(std::unique_ptr<TextDataset> texts, const SpecialTokens& special, std::int64_t vocabulary,
                std::uint64_t seed, std::vector<std::int32_t> before = {},
                std::vector<std::int32_t> behind = {});
  std::vector<std::string_view> gives() const override {
    return {field::tokens, field::picked, field::targets};
  }
  std::int64_t count() const override { return texts_->count(); }
  void sample(std::int64_t index, const FieldTensors& to) override;
  std::string describe() const override { return texts_->describe() + ", 15 % of the tokens to be found"; }

 private:
  bool is_ordinary(std::int32_t token) const;
  std::int32_t drawn(std::uint32_t word) const;

  std::unique_ptr<TextDataset> texts_;
  SpecialTokens special_;
  std::int64_t vocabulary_;
  std::uint64_t seed_;
  std::vector<std::int32_t> before_, behind_;
  std::vector<std::int32_t> text_;
  std::vector<std::int64_t> picked_;
};

}  // namespace mindpipe
