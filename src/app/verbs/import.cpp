#include <filesystem>

#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/models/architectures.h"
#include "config/settings.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// The name that a directory has, for that of a run.
std::string name_of_directory(const std::string& directory) {
  const fs::path whole = fs::path(directory).lexically_normal();
  const fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return name.empty() || name == "." || name == ".." ? "model" : name.string();
}

/// The configuration that a model's settings make, with all that a run has to say.
std::string yaml_for(const TheirModel& model, const std::string& directory) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"run.dir", quoted_if_needed("runs/" + name_of_directory(directory))},
      {"run.weights", quoted_if_needed(directory)},
      {"model.kind", std::string(name_of(model.kind))}};
  const auto is_of_data = [](const auto& line) { return line.first.starts_with("data."); };
  for (const auto& line : model.settings)
    if (!is_of_data(line)) lines.push_back(line);
  lines.emplace_back("data.train", "[data/train]  # put your own here");
  for (const auto& line : model.settings)
    if (is_of_data(line)) lines.push_back(line);
  return fmt::format("# {} as {} describes it (mindpipe-train import).\n", model.architecture,
                     directory + "/config.json") +
         yaml_of(lines);
}

}  // namespace

/// Writes the configuration that a directory's config.json means.
int import_model(const Arguments& arguments, const Config&) {
  const ImportArguments& asked = arguments.import_from;
  const TheirModel model = their_model(asked.from + "/config.json");
  replace_file(asked.output, yaml_for(model, asked.from));
  read_config(asked.output, {});
  print(fmt::format("{}: {} of {}; data.train is yours to name\n", asked.output, model.architecture,
                    asked.from));
  if (!model.left_out.empty()) print(fmt::format("left out: {}\n", join(model.left_out, ", ")));
  return 0;
}

}  // namespace mindpipe
