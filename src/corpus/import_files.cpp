#include "corpus/import_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/check.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "corpus/byte_stream.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// A file's ending, without that of the packing.
std::string ending_of(const std::string& path) {
  std::string name = fs::path(path).filename();
  for (const char* packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name = fs::path(name).stem();
  return fs::path(name).extension();
}

std::optional<TextFormat> format_of_ending(const std::string& ending) {
  if (ending == ".txt" || ending == ".md") return TextFormat::text;
  if (ending == ".jsonl" || ending == ".json" || ending == ".ndjson") return TextFormat::jsonl;
  if (ending == ".tsv") return TextFormat::pairs;
  if (ending == ".bin" || ending == ".npy") return TextFormat::tokens;
  return std::nullopt;
}

/// Refuses columns, which their ending or their first bytes show, with the line that makes JSON lines of
/// them.
void require_no_columns(const std::string& path) {
  std::array<char, 8> first{};
  const std::string_view begin(first.data(), open_bytes(path)->read(first));
  const std::string ending = fs::path(path).extension(),
                    lines = fs::path(path).replace_extension(".jsonl").string();
  if (ending == ".parquet" || begin.starts_with("PAR1\x15"))
    fail(Exit::bad_data,
         "{}: Parquet is not read; make JSON lines of it: python3 -c \"import pandas; "
         "pandas.read_parquet('{}')"
         ".to_json('{}', orient='records', lines=True)\"",
         path, path, lines);
  if (ending == ".arrow" || ending == ".feather" || begin.starts_with("ARROW1"))
    fail(Exit::bad_data,
         "{}: Arrow is not read; make JSON lines of it: python3 -c \"from datasets import Dataset; "
         "Dataset.from_file('{}').to_json('{}')\"",
         path, path, lines);
}

}  // namespace

std::vector<ImportFile> files_to_import(const std::vector<std::string>& inputs, const std::string& format) {
  const std::optional<TextFormat> chosen = kind_named<TextFormat>(format);
  MP_REQUIRE(chosen || format == "auto", Exit::usage,
             "there is no format '{}'; choose auto, text, paragraphs, jsonl, pairs or tokens", format);
  std::vector<ImportFile> files;
  for (const std::string& input : inputs) {
    std::error_code problem;
    const fs::file_status status = fs::status(input, problem);
    if (!fs::exists(status)) fail_to_open(input, ENOENT, Exit::io_error);
    if (!fs::is_directory(status)) {
      require_no_columns(input);
      files.push_back(
          {input, chosen.value_or(format_of_ending(ending_of(input)).value_or(TextFormat::text))});
      continue;
    }
    std::vector<std::string> below;
    std::int64_t left_out = 0;
    for (fs::recursive_directory_iterator entry(input, problem), end; !problem && entry != end;
         entry.increment(problem)) {
      std::error_code none;
      if (!entry->is_regular_file(none)) continue;
      require_no_columns(entry->path());
      if (format_of_ending(ending_of(entry->path()))) below.push_back(entry->path());
      else ++left_out;
    }
    MP_REQUIRE(!problem, Exit::io_error, "{}: the folder cannot be read ({})", input, problem.message());
    MP_REQUIRE(
        !below.empty(), Exit::bad_data,
        "{}: the folder has no file to import (.txt, .md, .jsonl, .json, .ndjson, .tsv, .bin or .npy, also "
        "packed as .gz or .zst)",
        input);
    if (left_out > 0) info("{}: {} files with other endings are left out", input, left_out);
    std::sort(below.begin(), below.end());
    for (const std::string& path : below)
      files.push_back({path, chosen.value_or(*format_of_ending(ending_of(path)))});
  }
  return files;
}

}  // namespace mindpipe
