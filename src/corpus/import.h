#pragma once
#include <cstdint>
#include <string>

#include "core/kinds.h"
#include "corpus/token_writer.h"

namespace mindpipe {

/// Way in which a file of text is cut into documents: not at all, at blank lines, or one JSON object a line.
#define MINDPIPE_TEXT_FORMATS(kind) kind(text, "text") kind(paragraphs, "paragraphs") kind(jsonl, "jsonl")
MINDPIPE_KINDS(TextFormat, NamedRow, MINDPIPE_TEXT_FORMATS)
/// The format that "text", "paragraphs" or "jsonl" names; "auto" goes by the ending of `path`.
TextFormat text_format_of(const std::string& name, const std::string& path);

/// Reads text piece by piece, one token a byte, into documents. Empty ones are left out and counted.
class TextImport {
 public:
  /// An import into `writer`. With `end_of_text` every document ends in token 256.
  TextImport(TokenWriter& writer, bool end_of_text) : writer_(writer), end_of_text_(end_of_text) {}
  /// Reads one file. `key` names the text in the objects of a jsonl file.
  void read(const std::string& path, TextFormat format, const std::string& key);
  std::int64_t left_out() const { return left_out_; }

 private:
  void add(std::string_view text);
  void end_document();

  TokenWriter& writer_;
  bool end_of_text_, begun_ = false;
  std::int64_t left_out_ = 0;
};

}  // namespace mindpipe
