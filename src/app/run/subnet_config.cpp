#include "app/run/subnet_config.h"

#include <algorithm>

#include "config/config.h"
#include "config/document.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {
namespace {

/// Whether a setting of a network has anything to say: the file without it is another configuration. Numbers
/// of shards are always said: left out they follow the grid, and bits with them.
bool is_needed(const Config& config, std::size_t index) {
  Config without = config, defaults;
  defaults.model.kind = config.model.kind;
  const Setting setting = settings_of(without)[index];
  const std::vector<Setting> all = settings_of(defaults);  // of all spaces, as it names none
  const auto usual = std::find_if(all.begin(), all.end(),
                                  [&](const Setting& other) { return other.key() == setting.key(); });
  if (setting.is_required() || setting.key().starts_with("reproducible.")) return true;
  if (setting.key() == "model.kind") return true;
  setting.read(parse_document(usual->written(), setting.key(), false));
  fill_in(without);
  return !(without == config);
}

/// The words of a side's blocks, as comments of a few to a line.
std::string words_of_side(const Space& space, const std::vector<std::uint8_t>& choice, bool encodes) {
  constexpr int in_a_line = 12;
  std::string text;
  int told = 0;
  for (int block = 0; block < space.blocks(); ++block) {
    if (space.encodes(block) != encodes) continue;
    if (told % in_a_line == 0)
      text += told > 0                 ? ",\n#          "
              : encodes                ? "#   encoder "
              : space.is_of_pictures() ? "#   pictures "
                                       : "#   decoder ";
    text += (told++ % in_a_line > 0 ? ", " : "") + space.candidates(block)[choice[block]].word();
  }
  return told > 0 ? text + "\n" : text;
}

}  // namespace

Config subnet_config(const Config& supernet, const std::vector<std::uint8_t>& choice,
                     const std::string& run_dir, const std::string& weights) {
  Config config = supernet;
  config.model = {};
  config.model.kind = ModelKind::subnet;
  static_cast<SpaceSettings&>(config.model.subnet) = supernet.model.supernet;
  config.model.subnet.choice.assign(choice.begin(), choice.end());
  config.run = {};
  config.run.dir = run_dir;
  config.run.weights = weights;
  config.grid = {};
  config.schedule = {};
  config.supernet = {};
  config.search = {};
  return resolve(config);
}

Config with_steps(Config supernet, int steps) {
  int& decay = supernet.optimizer.rate.decay;
  if (decay == supernet.train.steps) decay = 0;  // the floor is reached at the last step, too
  supernet.train.steps = steps;
  return supernet;
}

std::string subnet_yaml(const Config& supernet, const std::vector<std::uint8_t>& choice,
                        const std::string& run_dir, const std::string& weights) {
  Config config = subnet_config(supernet, choice, run_dir, weights);
  const std::vector<Setting> all = settings_of(config);
  std::vector<Setting> needed;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_needed(config, i)) needed.push_back(all[i]);
  const Space& space = config.model.subnet.space;
  const std::string begins =
      weights.empty()
          ? "It is trained from scratch."
          : "It begins with the weights that it has there; run.weights=\"\" trains it from scratch.";
  return fmt::format("# A network of the supernet in {}, a layer for each block. {}\n{}{}", supernet.run.dir,
                     begins, words_of_side(space, choice, true), words_of_side(space, choice, false)) +
         yaml_of(needed);
}

std::optional<NamedNetwork> network_of(const Config& config) {
  if (config.model.kind != ModelKind::subnet) return std::nullopt;
  const subnet::Settings& m = config.model.subnet;
  return NamedNetwork{m.space, {m.choice.begin(), m.choice.end()}};
}

}  // namespace mindpipe
