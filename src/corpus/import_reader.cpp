#include "corpus/import_reader.h"

#include <cctype>
#include <utility>

#include "core/check.h"

namespace mindpipe {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20, longest_whole = std::size_t{16} << 20,
                      longest_paragraph = std::size_t{64} << 20;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

/// Whether a letter, a digit or a mark of ASCII, or a character of three bytes that is no space, ends at
/// `end`.
bool ends_in_a_mark(std::string_view text, std::size_t end) {
  if (std::isgraph(static_cast<unsigned char>(text[end - 1])) != 0) return true;
  const std::string_view last = end < 3 ? std::string_view() : text.substr(end - 3, 3);
  return !last.empty() && ((last[0] >= '\xe4' && last[0] <= '\xef') || last == "\u3002");
}

/// Whether a letter or digit begins here: of ASCII, or one of a script whose first byte begins no space.
bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c >= '\xe4' && c <= '\xed');
}

/// Where a text can be cut: behind the last end of a line that has no spaces around it; 0: nowhere.
std::size_t last_cut(std::string_view text) {
  for (std::size_t i = text.size(); i > 2; --i)
    if (text[i - 2] == '\n' && is_letter(text[i - 1]) && ends_in_a_mark(text, i - 2)) return i - 1;
  return 0;
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
    rest_.resize(before + piece);
    const std::size_t count = bytes_->read(std::span(rest_).subspan(before));
    rest_.resize(before + count);
    const bool is_end = count < piece;
    const std::size_t cut = is_end ? rest_.size() : cuts_texts_ ? last_cut(rest_) : 0;
    if (is_end || cut > 0) {
      documents.push_back({file_, 0, rest_.substr(0, cut), begins_, is_end});
      rest_.erase(0, cut);
      begins_ = false;
      if (is_end) close();
      return;
    }
    MP_REQUIRE(rest_.size() <= longest_whole, Exit::bad_data,
               "{}: one document of more than 16 MiB, which cannot be cut at a line for this tokenizer; make "
               "several "
               "documents of it (--format paragraphs, or JSON lines)",
               files_[file_].path);
  }
}

void ImportReader::read_lines(std::vector<RawDocument>& documents) {
  const TextFormat format = files_[file_].format;
  std::size_t bytes = 0;
  std::string paragraph;
  std::int64_t first = 0;
  const auto add = [&](std::int64_t line, std::string text) {
    bytes += text.size();
    documents.push_back({file_, line, std::move(text)});
  };
  std::string line;
  while (bytes < piece && lines_->next(line)) {
    if (format == TextFormat::paragraphs) {
      if (is_blank(line)) {
        if (!paragraph.empty()) add(first, std::exchange(paragraph, {}));
        continue;
      }
      if (paragraph.empty()) first = lines_->number();
      paragraph += line;
      if (lines_->was_ended()) paragraph += '\n';
      MP_REQUIRE(paragraph.size() <= longest_paragraph, Exit::bad_data,
                 "{}: the paragraph from line {} on has more than 64 MiB; blank lines divide paragraphs",
                 files_[file_].path, first);
    } else if (format == TextFormat::pairs ? !line.empty() : !is_blank(line)) {
      add(lines_->number(), std::move(line));
    }
  }
  if (!paragraph.empty()) add(first, std::move(paragraph));
}

}  // namespace mindpipe
