#include "paper/questions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "plan/cost_model.h"
#include "text_model.h"

namespace mindpipe {
namespace {

/// Where the bundled configurations are: beside the source, or where they were copied to with the program.
std::string folder_of_configurations() {
  const char* copied = std::getenv("MINDPIPE_CONFIGS");
  return copied != nullptr ? copied : std::string(MINDPIPE_SOURCE_DIR) + "/configs";
}

/// What steps and evaluations ask of one replica, one stage.
std::set<PlannedAttention> asked_by(const Config& config) {
  CostModel costs(config, make_layout(config, {}));
  const int blocks = static_cast<int>(costs.model().blocks().size());
  std::set<PlannedAttention> asked;
  for (const auto& footprint :
       {costs.passes().training_footprint(0, blocks), costs.passes().evaluation_footprint(0, blocks)})
    asked.insert(footprint.backend.planned.begin(), footprint.backend.planned.end());
  return asked;
}

/// The file with these settings, on one rank of a GPU that no library describes: questions without answers.
Config configuration(const std::string& name, const std::vector<std::string>& settings) {
  std::vector<std::string> all{"device.kind=cuda", "device.description=instant", "grid.pipeline=1",
                               "grid.data=1"};
  all.insert(all.end(), settings.begin(), settings.end());
  return resolve(read_bundled(name, all));
}

/// The gradients of what only evaluations ask of the library.
std::vector<PlannedAttention> withheld_by(const std::set<PlannedAttention>& asked) {
  std::set<std::string> backwards;
  for (const PlannedAttention& question : asked)
    if (question.backward) backwards.insert(question.text());
  std::vector<PlannedAttention> withheld;
  for (PlannedAttention question : asked) {
    question.backward = true;
    if (!backwards.contains(question.text())) withheld.push_back(question);
  }
  return withheld;
}

/// Names of all bundled files, in order.
std::set<std::string> bundled_files() {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder_of_configurations()))
    if (file.path().extension() == ".yaml") names.insert(file.path().stem());
  return names;
}

}  // namespace

/// Files that a configuration names are looked for from where its folder stands.
Config read_bundled(const std::string& name, const std::vector<std::string>& settings) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder_of_configurations() + "/..");
  const Config config = read_config(
      std::filesystem::path(folder_of_configurations()).filename().string() + "/" + name + ".yaml", settings);
  std::filesystem::current_path(here);
  return config;
}

AttentionCall call_of(const AttentionForm& f) {
  static const std::int32_t lengths[8] = {};
  AttentionCall call;
  call.samples = f.samples;
  call.query_heads = f.query_heads;
  call.key_heads = f.key_heads;
  call.queries = f.queries;
  call.keys = f.keys;
  call.width = f.width;
  call.causal = f.causal;
  call.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(f.width)));  // as layers have it
  call.key_lengths = f.padded ? lengths : nullptr;
  const bool is_self = f.queries == f.keys;
  const auto view = [&](std::int64_t rows, std::int64_t heads) {
    return HeadsView{nullptr, rows * heads * f.width, heads * f.width};
  };
  const std::int64_t all = f.query_heads + 2 * f.key_heads;
  call.q = call.dq = view(f.queries, is_self ? all : f.query_heads);
  call.k = call.v = call.dk = call.dv = view(f.keys, is_self ? all : 2 * f.key_heads);
  call.out = call.dout = view(f.queries, f.query_heads);
  return call;
}

PaperQuestion question_of(const AttentionForm& form, bool backward, const std::string& from) {
  const AttentionCall call = call_of(form);
  return {from, is_planned(call, DType::bf16), PlannedAttention(call, backward)};
}

std::map<std::string, std::string> configurations_without_questions() {
  std::map<std::string, std::string> without;
  for (const std::string& name : bundled_files()) {
    const Config config = read_bundled(name);
    if (config.model.kind == ModelKind::wide_resnet) without[name] = "its model has no attention";
    else if (config.model.kind == ModelKind::supernet)
      without[name] = "its candidates would ask as much as all others: their plans are estimated";
    else if (config.train.precision != Precision::bf16)
      without[name] = "it trains in f32, whose attention is that of our own kernels";
  }
  return without;
}

std::vector<std::string> bundled_configurations() {
  const auto without = configurations_without_questions();
  std::vector<std::string> names;
  for (const std::string& name : bundled_files())
    if (!without.contains(name)) names.push_back(name);
  return names;
}

std::vector<PaperQuestion> questions_of_file(const std::string& name, std::vector<std::string> settings) {
  std::vector<PaperQuestion> questions;
  settings.emplace_back("grid.tensor=1");
  const Config file = configuration(name, settings);
  for (const PlannedAttention& asked : asked_by(file)) questions.push_back({name, true, asked});
  return questions;
}

std::vector<PaperQuestion> questions_of_configuration(const std::string& name) {
  const Config file = configuration(name, {"grid.tensor=1"});
  const int heads = block_model(file).heads, samples = file.train.batch / file.reproducible.data;
  std::map<PlannedAttention, std::string> first_from, first_withheld;
  for (int tensor = 1; tensor <= heads; ++tensor)
    for (int micro_batch = 1; heads % tensor == 0 && micro_batch <= samples; ++micro_batch) {
      if (samples % micro_batch != 0) continue;
      const auto set = [](const char* key, int value) { return fmt::format("{}={}", key, value); };
      try {
        const Config config =
            configuration(name, {set("grid.tensor", tensor), set("reproducible.tensor", tensor),
                                 set("train.micro_batch", micro_batch), "reproducible.data=1",
                                 set("train.batch", micro_batch)});
        const std::string from = fmt::format("{} tensor {} micro-batch {}", name, tensor, micro_batch);
        const std::set<PlannedAttention> all = asked_by(config);
        for (const PlannedAttention& asked : all) first_from.try_emplace(asked, from);
        for (const PlannedAttention& one : withheld_by(all)) first_withheld.try_emplace(one, from);
      } catch (const Error&) {
        break;  // a degree that the rules refuse
      }
    }
  std::vector<PaperQuestion> questions;
  for (const auto& [asked, from] : first_from) questions.push_back({from, true, asked});
  for (const auto& [one, from] : first_withheld)
    questions.push_back({from, false, one, "training drops weights of attention, by a mask of our own"});
  return questions;
}

std::vector<PaperQuestion> odd_questions() {
  std::vector<AttentionForm> forms;
  for (const std::int64_t width : {4, 8, 16, 24, 40, 64, 72, 80, 96, 128, 136, 192, 256})
    forms.push_back({.samples = 1, .queries = 256, .keys = 256, .width = width, .causal = true});
  for (const std::int64_t samples : {1, 3})
    for (const std::int64_t rows : {2, 63, 64, 65, 100, 127, 197, 1000})
      for (const bool causal : {false, true})
        for (const bool padded : {false, true})
          forms.push_back({.samples = samples,
                           .query_heads = 6,
                           .key_heads = rows % 2 == 0 ? 2 : 6,
                           .queries = rows,
                           .keys = rows,
                           .width = rows < 100 ? 32 : 64,
                           .causal = causal,
                           .padded = padded});
  for (const auto& [queries, keys] : {std::pair{64, 100}, {1, 128}, {100, 384}, {384, 100}, {17, 1000}})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true})
        forms.push_back({.samples = 2, .queries = queries, .keys = keys, .causal = causal, .padded = padded});
  std::vector<PaperQuestion> questions;
  for (const AttentionForm& form : forms)
    for (const bool backward : {false, true}) questions.push_back(question_of(form, backward, "odd"));
  return questions;
}

std::vector<PaperQuestion> questions_of_a_check() {
  constexpr int one_in = 24;
  std::vector<PaperQuestion> questions;
  std::set<PlannedAttention> known;  // configurations ask some alike
  for (const std::string& name : bundled_configurations())
    for (const PaperQuestion& asked : questions_of_file(name))
      if (asked.is_asked && known.insert(asked.question).second) questions.push_back(asked);
  int number = 0;
  for (const PaperQuestion& asked : odd_questions())
    if (asked.is_asked && number++ / 2 % one_in == 0) questions.push_back(asked);  // in both directions
  return questions;
}

}  // namespace mindpipe
