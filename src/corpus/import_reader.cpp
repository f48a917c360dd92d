#include "corpus/import_reader.h"

#include <utility>

#include "core/check.h"

namespace mindpipe {
namespace {

constexpr std::size_t longest_paragraph = std::size_t{16} << 20;
constexpr std::size_t bytes_around_text = 128;  ///< the memory of a short document beside its text

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

}  // namespace

std::vector<RawDocument> ImportReader::next() {
  std::vector<RawDocument> documents;
  while (documents.empty() && file_ < files_.size())
    if (!read(documents)) close();
  return documents;
}

void ImportReader::close() {
  ++file_;
  bytes_.reset();
  lines_.reset();
  rest_.clear();
  begins_ = true;
}

/// Reads on in the open file; false at its end.
bool ImportReader::read(std::vector<RawDocument>& documents) {
  const std::string& path = files_[file_].path;
  const bool is_text = files_[file_].format == TextFormat::text;
  if (is_text && !bytes_) bytes_ = open_bytes(path);
  if (!is_text && !lines_) lines_.emplace(lines_of_text(path));
  if (is_text) read_text(documents);
  else read_lines(documents);
  return !documents.empty();
}

void ImportReader::read_text(std::vector<RawDocument>& documents) {
  for (;;) {
    const std::size_t before = rest_.size();
    rest_.resize(before + TextCuts::piece);
    const std::size_t count = bytes_->read(std::span(rest_).subspan(before));
    rest_.resize(before + count);
    const bool is_end = count < TextCuts::piece;
    const std::size_t cut = is_end ? rest_.size() : cuts_.last(rest_);
    if (is_end || cut > 0) {
      documents.push_back({file_, 0, rest_.substr(0, cut), begins_, is_end});
      rest_.erase(0, cut);
      begins_ = false;
      if (is_end) close();
      return;
    }
    MP_REQUIRE(rest_.size() <= TextCuts::longest_whole, Exit::bad_data, "{}: {}", files_[file_].path,
               TextCuts::why_too_long);
  }
}

void ImportReader::read_lines(std::vector<RawDocument>& documents) {
  const TextFormat format = files_[file_].format;
  std::size_t bytes = 0;
  std::string paragraph;
  std::int64_t first = 0;
  const auto add = [&](std::int64_t line, std::string text) {
    bytes += text.size() + bytes_around_text;
    documents.push_back({file_, line, std::move(text)});
  };
  std::string line;
  while (bytes < TextCuts::piece && lines_->next(line)) {
    if (format == TextFormat::paragraphs) {
      if (is_blank(line)) {
        if (!paragraph.empty()) add(first, std::exchange(paragraph, {}));
        continue;
      }
      if (paragraph.empty()) first = lines_->number();
      paragraph += line;
      if (lines_->was_ended()) paragraph += '\n';
      MP_REQUIRE(paragraph.size() <= longest_paragraph, Exit::bad_data,
                 "{}: the paragraph from line {} on has more than 16 MiB; blank lines divide paragraphs",
                 files_[file_].path, first);
    } else if (format == TextFormat::pairs ? !line.empty() : !is_blank(line)) {
      add(lines_->number(), std::move(line));
    }
  }
  if (!paragraph.empty()) add(first, std::move(paragraph));
}

}  // namespace mindpipe
