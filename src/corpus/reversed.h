#pragma once
#include <memory>

#include "corpus/dataset.h"

namespace mindpipe {

/// Pairs out of texts, to learn to turn a text around: the target is a text, the source its tokens backwards,
/// cut to a length of its own.
class ReversedDataset final : public Dataset {
 public:
  ReversedDataset(std::unique_ptr<TextDataset> texts, std::int64_t source_sequence);
  std::vector<std::string_view> gives() const override {
    return {field::source, field::source_lengths, field::tokens, field::targets};
  }
  std::int64_t count() const override { return texts_->count(); }
  void sample(std::int64_t index, const FieldTensors& to) override;
  std::string describe() const override { return texts_->describe() + ", each from itself backwards"; }

 private:
  std::unique_ptr<TextDataset> texts_;
  std::int64_t source_sequence_;
  std::vector<std::int32_t> text_;
};

}  // namespace mindpipe
