#include <algorithm>
#include <array>
#include <filesystem>

#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "config/models/architectures.h"
#include "config/settings.h"
#include "core/log_mark.h"
#include "core/text.h"
#include "io/file.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

constexpr std::array tokenizer_names{"tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model"};

/// The name that a directory has, for that of a run.
std::string name_of_directory(const std::string& directory) {
  const fs::path whole = fs::path(directory).lexically_normal();
  const fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return name.empty() || name == "." || name == ".." ? "model" : name.string();
}

/// Whether a directory has a tokenizer for the model; what speaks against one that is there.
struct FoundTokenizer {
  bool fits = false;
  std::string misfit;
};
FoundTokenizer tokenizer_in(const std::string& directory, const TheirModel& model) {
  const auto vocabulary = std::find_if(model.settings.begin(), model.settings.end(),
                                       [](const auto& line) { return line.first == "model.vocabulary"; });
  std::error_code none;
  const bool is_there = std::any_of(tokenizer_names.begin(), tokenizer_names.end(), [&](const char* name) {
    return fs::exists(directory + "/" + name, none);
  });
  if (vocabulary == model.settings.end() || !is_there) return {};
  try {
    const TokenId tokens = load_tokenizer(directory)->vocabulary();
    if (tokens <= std::stoll(vocabulary->second)) return {true, ""};
    return {false, fmt::format("the tokenizer, whose {} tokens are more than the model's {}", tokens,
                               vocabulary->second)};
  } catch (const Error& error) {
    return {false, fmt::format("the tokenizer ({})", error.what())};
  }
}

/// The configuration that a model's settings make, with all that a run has to say.
std::string yaml_for(const TheirModel& model, const std::string& directory, bool with_tokenizer) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"run.dir", quoted_if_needed("runs/" + name_of_directory(directory))},
      {"run.weights", quoted_if_needed(directory)},
      {"model.kind", std::string(name_of(model.kind))}};
  const auto is_of_data = [](const auto& line) { return line.first.starts_with("data."); };
  for (const auto& line : model.settings)
    if (!is_of_data(line)) lines.push_back(line);
  if (with_tokenizer) lines.emplace_back("data.tokenizer", quoted_if_needed(directory));
  lines.emplace_back("data.train", "[data/train]  # put your own here");
  for (const auto& line : model.settings)  // special tokens are the tokenizer's, where there is one
    if (is_of_data(line) && !(with_tokenizer && line.first.starts_with("data.special.")))
      lines.push_back(line);
  return fmt::format("# {} as {} describes it (mindpipe-train import).\n", model.architecture,
                     directory + "/config.json") +
         yaml_of(lines);
}

}  // namespace

/// Writes the configuration that a directory's config.json means.
int import_model(const Arguments& arguments, const Config&) {
  const ImportArguments& asked = arguments.import_from;
  TheirModel model = their_model(asked.from + "/config.json");
  const FoundTokenizer tokenizer = tokenizer_in(asked.from, model);
  if (!tokenizer.misfit.empty()) model.left_out.push_back(tokenizer.misfit);
  replace_file(asked.output, yaml_for(model, asked.from, tokenizer.fits));
  read_config(asked.output, {});
  print(fmt::format("{}: {} of {}; data.train is yours to name\n", asked.output, model.architecture,
                    asked.from));
  if (!model.left_out.empty()) print(legible(fmt::format("left out: {}\n", join(model.left_out, ", "))));
  return 0;
}

}  // namespace mindpipe
