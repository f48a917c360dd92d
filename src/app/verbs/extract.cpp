#include "app/verbs/extract.h"

#include <filesystem>

#include <fmt/ranges.h>
#include "app/run/json_read.h"
#include "app/run/run_directory.h"
#include "app/run/weights.h"
#include "app/run/whole_checkpoint.h"
#include "app/verbs/checkpoint_tools.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "config/document.h"
#include "config/models/choices.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/text.h"
#include "io/safetensors.h"
#include "plan/cost_model.h"
#include "supernet/subnet.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// Settings of a supernet that no network has, and that may name files which are not here.
const std::vector<std::string> without_files{"supernet.sampler=uniform", "supernet.spacing=auto",
                                             "supernet.prices="};

/// The kind of model that a configuration says.
std::string kind_said(const Node& root) {
  for (const auto& [section, settings] : root.entries)
    for (const auto& [key, value] : settings.entries)
      if (section.text == "model" && key.text == "kind") return value.text;
  return "";
}

/// Brings words of a network's tensor out of a file of its supernet's.
void take_from(const SafetensorsFile& file, const WholeTensor& tensor, std::int64_t first, std::int64_t count,
               float* to) {
  const StoredTensor& stored = file.tensor(tensor.name);
  MP_REQUIRE(stored.shape == tensor.shape(), Exit::bad_data,
             "{}: {} has the shape [{}], and the network's has [{}] (is it the supernet's own file?)",
             file.path(), tensor.name, fmt::join(stored.shape, ", "), fmt::join(tensor.shape(), ", "));
  file.read(stored, first, 1, count, to);
  file.forget(stored);
}

}  // namespace

bool has_newest_weights(const std::string& run) {
  auto members = read_json(read_text_if_there(run + "/status.json", largest_status).value_or(""));
  if (!members || members->texts.count("state") == 0) return false;
  const std::string &state = members->texts.at("state"), reason = members->texts["reason"];
  const bool was_cut_off = reason == ended_by_signal || reason == ended_by_launcher;
  if (state != "done" && (state != "stopped" || was_cut_off)) return false;
  // Others may have left digits, or have other names: then a checkpoint has the weights.
  const ExportConfig how = supernet_of(run).exported;
  return how.precision == Precision::f32 && how.names == ExportNames::transformers &&
         file_is_there(run + "/model.safetensors");
}

Config supernet_of(const std::string& run_or_checkpoint, const std::vector<std::string>& overrides) {
  const std::string settings = run_or_checkpoint + "/config.yaml";
  MP_REQUIRE(file_is_there(settings), Exit::input_missing,
             "{}: has no config.yaml (name the run directory of a supernet, or one of its checkpoints)",
             run_or_checkpoint);
  const std::string kind = kind_said(read_document(settings));
  MP_REQUIRE(kind == name_of(ModelKind::supernet), Exit::bad_configuration,
             "{}: was trained as a {} (a network is taken out of a supernet)", run_or_checkpoint, kind);
  std::vector<std::string> all = without_files;
  all.insert(all.end(), overrides.begin(), overrides.end());
  return is_checkpoint(run_or_checkpoint)
             ? settings_of_checkpoint(run_or_checkpoint, read_manifest(run_or_checkpoint), all)
             : read_config(settings, all);
}

void require_space(const std::string& run_or_checkpoint, const Config& supernet) {
  const Space& wanted = supernet.model.supernet.space;
  const std::string other = difference(supernet_of(run_or_checkpoint).model.supernet.space, wanted);
  MP_REQUIRE(other.empty(), Exit::bad_configuration, "{}: weights of another space than {}: {}",
             run_or_checkpoint, wanted.name, other);
}

std::string extract_weights(const std::string& run_or_checkpoint, const Config& supernet,
                            const std::vector<std::uint8_t>& choice, const std::string& directory,
                            const Descriptions& more) {
  require_space(run_or_checkpoint, supernet);
  MP_REQUIRE(
      !supernet.model.supernet.space.is_of_pictures(), Exit::bad_configuration,
      "{}: networks of pictures have batch norms, and a supernet has no running statistics for them to "
      "inherit (train the network from scratch: best-1.yaml of a search, or model.space and "
      "model.choice)",
      run_or_checkpoint);
  const Config config = subnet_config(supernet, choice, supernet.run.dir);
  CostModel costs(config, make_layout(config, {}));
  if (!is_checkpoint(run_or_checkpoint) && has_newest_weights(run_or_checkpoint)) {
    const SafetensorsFile weights(run_or_checkpoint + "/model.safetensors");
    write_weights_for_others(
        costs.model(), config, directory,
        [&](const WholeTensor& tensor, std::int64_t first, std::int64_t count, float* to) {
          take_from(weights, tensor, first, count, to);
        },
        more);
    return weights.path();
  }
  MP_REQUIRE(is_checkpoint(run_or_checkpoint) || !checkpoints_in(run_or_checkpoint).empty(),
             Exit::input_missing,
             "{}: has no weights to take from: a run that has ended or stopped, with export.precision f32 "
             "and in one file, or a checkpoint",
             run_or_checkpoint);
  const WholeCheckpoint checkpoint(checkpoint_at(run_or_checkpoint));
  write_weights_for_others(
      costs.model(), config, directory,
      [&](const WholeTensor& tensor, std::int64_t first, std::int64_t count, float* to) {
        checkpoint.read(tensor, costs.model(), first, count, to);
      },
      more);
  return fmt::format("{}, after {} subnets", checkpoint.file.path(), checkpoint.manifest.progress.step);
}

namespace {

/// The choice that --choice says: numbers, or a file whose model has one.
std::vector<std::uint8_t> asked_choice(const std::string& asked, const Config& supernet) {
  const Space& space = supernet.model.supernet.space;
  std::error_code too_long;  // numbers may be longer than a name
  if (!asked.ends_with(".yaml") && !asked.ends_with(".yml") && !fs::exists(asked, too_long))
    return read_choice(space, asked, "--choice");
  const Config named = read_config(asked, {});
  const std::optional<NamedNetwork> network = network_of(named);
  MP_REQUIRE(network.has_value(), Exit::bad_configuration,
             "{}: model.kind is {} (--choice takes the model.choice of a subnet, or numbers like 3, 0, 7)",
             asked, named.model.kind);
  const std::string other = difference(space, network->space);
  MP_REQUIRE(other.empty(), Exit::bad_configuration,
             "{}: names a network of another space than the supernet's, {}, where {} (that is {}'s)", asked,
             space.name, other, network->space.name);
  return network->choice;
}

}  // namespace

/// Takes a network out of a supernet: DIR/subnet.yaml, and its weights beside it as a run leaves them.
int extract(const Arguments& arguments, const Config&) {
  const ExtractArguments& asked = arguments.extract;
  const Config supernet = supernet_of(asked.from, arguments.overrides);
  const std::vector<std::uint8_t> choice = asked_choice(asked.choice, supernet);
  if (const std::string blind = blindness_of(supernet.model.supernet.space, choice); !blind.empty())
    warning("--choice: {}", blind);
  MP_REQUIRE(!file_is_there(asked.output + "/config.yaml"), Exit::cannot_create,
             "{}: is the directory of a run, whose own weights would be lost (name another --output)",
             asked.output);
  std::error_code problem;
  fs::create_directories(asked.output, problem);
  MP_REQUIRE(!problem, Exit::cannot_create, "{}: cannot be created ({}; name another --output)", asked.output,
             problem.message());
  const std::string yaml = subnet_yaml(supernet, choice, asked.output + "/run", asked.output);
  const std::string from =
      extract_weights(asked.from, supernet, choice, asked.output, {{"subnet.yaml", yaml}});
  print(fmt::format("{0}/subnet.yaml: the network\n{0}: its weights, from {1}\n", asked.output, from));
  return 0;
}

}  // namespace mindpipe
