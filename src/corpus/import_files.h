#pragma once
#include <string>
#include <vector>

#include "core/kinds.h"

namespace mindpipe {

/// What the files of an import hold: texts that are one document each, documents between blank lines, one
/// JSON object a line, a source and a target a line, or tokens.
#define MINDPIPE_TEXT_FORMATS(kind)                                                           \
  kind(text, "text") kind(paragraphs, "paragraphs") kind(jsonl, "jsonl") kind(pairs, "pairs") \
      kind(tokens, "tokens")
MINDPIPE_KINDS(TextFormat, NamedRow, MINDPIPE_TEXT_FORMATS)

struct ImportFile {
  std::string path;
  TextFormat format = TextFormat::text;
};

/// The files that an import reads: those that were named, in this order, and all below a folder that was
/// named, by their names. `format` is one of the formats, or auto: each file's ending says what it holds,
/// also before .gz and .zst. In a folder, a file whose ending says nothing is left out; a file of Arrow or
/// Parquet is refused.
std::vector<ImportFile> files_to_import(const std::vector<std::string>& inputs, const std::string& format);

}  // namespace mindpipe
