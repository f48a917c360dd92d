#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "corpus/documents.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// Subset of the samples: those that are learned from, or those that are held out.
enum class Subset { train, validation };
const char* name_of(Subset subset);

/// A file of text, one token a byte, one document. Training reads 90 %, to a line's end, validation the rest.
class TextFile : public Documents {
 public:
  TextFile(const std::string& path, Subset subset, std::int64_t vocabulary);
  std::int64_t count() const override { return 1; }
  std::int64_t length(std::int64_t) const override { return end_ - begin_; }
  void read(std::int64_t document, std::int64_t first, std::int64_t tokens, std::int32_t* out) const override;
  std::string name() const override;
  /// The bytes of the subset.
  std::string_view text() const {
    return {reinterpret_cast<const char*>(file_.data()) + begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  MappedFile file_;
  Subset subset_;
  std::int64_t vocabulary_, begin_ = 0, end_ = 0;
};

/// A file of text in tokens, one document, cut as TextFile is; all its tokens are in memory.
class TokenizedText : public Documents {
 public:
  TokenizedText(const std::string& path, Subset subset, const Tokenizer& tokenizer);
  std::int64_t count() const override { return 1; }
  std::int64_t length(std::int64_t) const override { return std::ssize(ids_); }
  void read(std::int64_t document, std::int64_t first, std::int64_t tokens, std::int32_t* out) const override;
  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::vector<TokenId> ids_;
};

}  // namespace mindpipe
