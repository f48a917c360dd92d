#include "app/run/files_beside.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "config/models/architectures.h"
#include "config/tokens.h"
#include "core/log.h"
#include "tokenize/for_transformers.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

const char* const settings_name = "config.json";
const char* const tokenizer_settings_name = "tokenizer_config.json";

/// Calls use(text) with one part of a file after the other: a tokenizer may be larger than what a rank may
/// take beside its model.
template <class Use>
void each_part(const std::string& path, Use use) {
  std::ifstream file(path, std::ios::binary);
  MP_REQUIRE(file.is_open(), Exit::input_missing, "{}: cannot be read (has it been taken away?)", path);
  std::vector<char> part(std::size_t{1} << 20);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())), file.gcount() > 0)
    use(std::string_view(part.data(), static_cast<std::size_t>(file.gcount())));
}

bool is_as_long(const std::string& path, std::uintmax_t bytes) {
  std::error_code none;
  return fs::is_regular_file(path, none) && fs::file_size(path, none) == bytes;
}

bool holds(const std::string& path, const std::string& text) {
  if (!is_as_long(path, text.size())) return false;
  bool equal = true;
  std::size_t at = 0;
  each_part(path, [&](std::string_view part) {
    equal = equal && std::string_view(text).substr(std::min(at, text.size()), part.size()) == part;
    at += part.size();
  });
  return equal;
}

bool is_copy(const std::string& path, const std::string& of) {
  std::error_code none;
  if (!is_as_long(path, fs::file_size(of, none))) return false;
  std::ifstream other(path, std::ios::binary);
  bool equal = true;
  each_part(of, [&](std::string_view part) {
    std::string there(part.size(), ' ');
    other.read(there.data(), static_cast<std::streamsize>(there.size()));
    equal = equal && there == part;
  });
  return equal;
}

}  // namespace

FilesBeside::FilesBeside(const Config& config, const std::string& directory) : directory_(directory + "/") {
  if (!config.data.tokenizer.empty()) write_tokenizer(config);
  const WrittenModel written = config_json(config);
  std::error_code none;
  if (written.json) write(settings_name, *written.json);
  else changes_ = changes_ || fs::exists(directory_ + settings_name, none);
  if (!written.json && !written.why_none.empty())
    info("no config.json for transformers: {}", written.why_none);
}

/// A run's own copy says all that is needed, and takes no reading.
void FilesBeside::write_tokenizer(const Config& config) {
  const std::string kept = tokenizer_copy_of(config.run);
  std::error_code none;
  try {
    if (directory_ == config.run.dir + "/" && fs::exists(kept, none)) {
      for (const auto& entry : fs::directory_iterator(kept)) {
        const std::string name = entry.path().filename();
        copy(entry.path(), name == kept_tokenizer_settings ? tokenizer_settings_name : name);
      }
      return;
    }
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config.data);
    for (const TokenizerFile& file : tokenizer->files()) copy(file.path, file.name);
    const std::string settings = settings_for_transformers(*tokenizer);
    if (!settings.empty()) write(tokenizer_settings_name, settings);
  } catch (const Error& error) {
    warning("no tokenizer beside the weights: {}", error.what());
  }
}

void FilesBeside::copy(const std::string& from, const std::string& name) {
  if (is_copy(directory_ + name, from)) return;
  changes_ = true;
  NewFile& file = made_.emplace_back(directory_ + name);
  each_part(from, [&](std::string_view part) { file.write(part.data(), part.size()); });
}

void FilesBeside::write(const std::string& name, const std::string& text) {
  // The last of them is config.json, which make_way takes away where another one changes.
  if (holds(directory_ + name, text) && !(changes_ && name == settings_name)) return;
  changes_ = true;
  NewFile& file = made_.emplace_back(directory_ + name);
  file.write(text.data(), text.size());
}

void FilesBeside::make_way() const {
  std::error_code none;
  if (changes_) fs::remove(directory_ + settings_name, none);
}

void FilesBeside::complete() {
  for (NewFile& file : made_) file.commit();
}

}  // namespace mindpipe
