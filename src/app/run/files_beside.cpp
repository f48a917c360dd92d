#include "app/run/files_beside.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/config.h"
#include "config/models/architectures.h"
#include "config/tokens.h"
#include "core/input_file.h"
#include "core/log.h"
#include "tokenize/for_transformers.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* settings_name = "config.json";
constexpr const char* tokenizer_settings_name = "tokenizer_config.json";
/// Files by which transformers knows a tokenizer, of which a directory has one.
constexpr std::array tokenizer_names{"tokenizer.json", "vocab.json",      "merges.txt",
                                     "vocab.txt",      "tokenizer.model", tokenizer_settings_name};

/// Reads at once: a tokenizer may be larger than what a rank may take beside its model.
constexpr std::size_t part_bytes = std::size_t{1} << 20;

std::string next_part(std::istream& in) {
  std::string part(part_bytes, '\0');
  in.read(part.data(), static_cast<std::streamsize>(part.size()));
  part.resize(static_cast<std::size_t>(in.gcount()));
  return part;
}

/// Whether a file is there with these bytes.
bool holds(const std::string& path, std::istream& bytes) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  std::ifstream file(path, std::ios::binary);
  for (std::string part = next_part(bytes);; part = next_part(bytes)) {
    if (part != next_part(file)) return false;
    if (part.empty()) return true;
  }
}

}  // namespace

FilesBeside::FilesBeside(const Config& config, const std::string& directory, const Descriptions& more)
    : directory_(directory + "/") {
  if (!config.data.tokenizer.empty()) write_tokenizer(config);
  for (const char* name : tokenizer_names)
    if (is_other_tokenizer_ && of_tokenizer_.count(name) == 0) going_.insert(name);
  const bool by_their_names = config.exported.names == ExportNames::transformers;
  const WrittenModel written =
      by_their_names ? config_json(config) : WrittenModel{{}, "export.names are those of MindSpore"};
  if (!written.json) info("no config.json for transformers: {}", written.why_none);
  Descriptions all = more;
  if (written.json) all[settings_name] = *written.json;
  going_.insert(settings_name);
  std::error_code none;
  changes_ = changes_ || (!written.json && fs::exists(directory_ + settings_name, none));
  for (const auto& [name, text] : all) {
    going_.insert(name);
    std::istringstream bytes(text);
    changes_ = changes_ || !holds(directory_ + name, bytes);
  }
  if (!changes_) return;
  for (const auto& [name, text] : all) {
    std::istringstream bytes(text);
    write(name, bytes);
  }
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
    std::istringstream bytes(settings);
    if (!settings.empty()) write_if_other(tokenizer_settings_name, bytes);
  } catch (const Error& error) {
    warning("no tokenizer beside the weights: {}", error.what());
  }
}

void FilesBeside::copy(const std::string& from, const std::string& name) {
  require_length(from, InputFile(from).size(), largest_tokenizer, Exit::bad_data);
  std::ifstream file(from, std::ios::binary);
  MP_REQUIRE(file.is_open(), Exit::input_missing, "{}: cannot be read (has it been taken away?)", from);
  write_if_other(name, file);
}

void FilesBeside::write_if_other(const std::string& name, std::istream& bytes) {
  of_tokenizer_.insert(name);
  if (holds(directory_ + name, bytes)) return;
  changes_ = true;
  is_other_tokenizer_ = is_other_tokenizer_ || name != tokenizer_settings_name;
  going_.insert(name);
  bytes.clear();
  bytes.seekg(0);
  write(name, bytes);
}

void FilesBeside::write(const std::string& name, std::istream& bytes) {
  NewFile& file = made_.emplace_back(directory_ + name);
  for (std::string part = next_part(bytes); !part.empty(); part = next_part(bytes))
    file.write(part.data(), part.size());
}

void FilesBeside::make_way() const {
  if (!changes_) return;
  std::error_code none;
  bool is_gone = false;
  for (const std::string& name : going_) is_gone = fs::remove(directory_ + name, none) || is_gone;
  if (is_gone)
    names_reach_device(directory_);  // a machine that goes down has not the new weights and the old name
}

void FilesBeside::complete() {
  for (NewFile& file : made_) file.commit();
}

}  // namespace mindpipe
