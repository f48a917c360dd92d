#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/models/table.h"

// Architectures of Hugging Face's transformers: what their config.json says, and what it is here. Each kind
// of model has its own in config/models/, beside its settings.
namespace mindpipe {

struct Config;

/// A row of the table that says what a config.json means. Where nothing is `ours`, the values in `words` are
/// those that are built, and the first is written; where nothing is `theirs`, our setting has the one value
/// `absent`.
struct TheirKey {
  /// Path of the key, "rope_scaling.factor". Several paths with spaces between are one value, theirs with
  /// spaces between. Of paths with | between the first that is there counts, and the first is written. A path
  /// that ends in # is the number of members. In `absent`, = is what the first path has.
  std::string theirs;
  std::string ours;                                             ///< key of our setting
  std::string absent;                                           ///< what a file without the key means
  std::vector<std::pair<std::string, std::string>> words = {};  ///< their values and ours, where they differ
  bool is_rare = false;                                         ///< written only where it is not `absent`
  bool may_differ = false;    ///< where paths differ, the first counts and others are named
  std::string null = "null";  ///< what null means; by itself: our auto, where there is one
  /// Where one of our settings has this value ("model.rotary_scaling=llama3"), a file without the key is
  /// refused, or means what another of our settings has.
  std::string needed_by = {}, then_as = {};
};

/// An architecture of transformers.
struct Architecture {
  std::string name;        ///< class: "GPT2LMHeadModel"
  std::string model_type;  ///< "gpt2"
  std::vector<TheirKey> keys;
  std::vector<std::string> also = {};  ///< classes whose files have its weights, and others besides
  /// Settings of ours that no config.json says, as most files of the architecture mean them.
  std::vector<std::pair<std::string, std::string>> usual = {};
  ModelKind kind{};  ///< what has it; architectures_of fills it in
};

/// All architectures that are built, as models with the settings of `config` have them.
std::vector<Architecture> architectures_of(const Config& config);

/// What a config.json means here.
struct TheirModel {
  std::string architecture;
  ModelKind kind{};
  std::vector<std::pair<std::string, std::string>> settings;  ///< key and value, in the order of our file
  std::vector<std::string> left_out;  ///< "embd_pdrop 0.1": what is not read, or not taken
};
/// Reads a config.json, or refuses it with a sentence that names file and key.
TheirModel their_model(const std::string& path);

/// The config.json of a model's weights; none where no architecture has its settings, and why.
struct WrittenModel {
  std::optional<std::string> json;
  std::string why_none;
};
WrittenModel config_json(const Config& resolved);

/// Names of activations, theirs and ours.
std::vector<std::pair<std::string, std::string>> their_activations();

}  // namespace mindpipe
