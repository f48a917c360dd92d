#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "corpus/dataset.h"
#include "corpus/rounds.h"
#include "corpus/token_file.h"

namespace mindpipe {

/// Which tokens of a pair count: PREFIX.mask has a byte for each, 1 where it does.
class AnswerMask {
 public:
  /// The mask of a pair; none where it has none, and so all tokens count.
  static std::optional<AnswerMask> of(const TokenFile& tokens, const std::string& prefix);
  /// Refuses a pair without a mask whose PREFIX.json says that only some tokens count.
  static void require_no_mask(const std::string& prefix);

  std::span<const std::uint8_t> counts() const {
    return {reinterpret_cast<const std::uint8_t*>(file_.data()), static_cast<std::size_t>(file_.size())};
  }

 private:
  explicit AnswerMask(const std::string& path) : file_(path) {}
  MappedFile file_;
};

/// Samples of conversations, one each, of which answers alone are targets. What is too long is cut, and an
/// answer that is cut does not count at all; what is shorter is filled up.
class AnswersDataset final : public Dataset {
 public:
  AnswersDataset(std::unique_ptr<TokenFile> tokens, AnswerMask mask, std::int64_t sequence,
                 std::optional<std::uint64_t> seed);
  std::int64_t count() const override { return rounds_.count(); }
  std::vector<std::string_view> gives() const override { return {field::tokens, field::targets}; }
  void sample(std::int64_t index, const FieldTensors& to) override;
  std::string describe() const override;

 private:
  std::unique_ptr<TokenFile> tokens_;
  AnswerMask mask_;
  std::int64_t sequence_;
  Rounds rounds_;
  std::vector<std::int32_t> text_;
};

}  // namespace mindpipe
