#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include "app/saved_weights.h"
#include "core/text.h"
#include "corpus/files.h"
#include "io/safetensors.h"
#include "runtime/generator.h"
#include "runtime/python.h"
#include "runtime/small_models.h"
#include "state/loss_sums.h"
#include "supernet/subnet.h"

/// A training that both this program and PyTorch do, and what each makes of it.
namespace mindpipe::oracle {

inline const std::string& python() {
  static const std::string found = python_with("torch, numpy", {"/usr/bin/python3", "python3"});
  return found;
}
#define NEEDS_TORCH()   \
  if (python().empty()) \
  GTEST_SKIP() << "no interpreter that imports torch and numpy (MINDPIPE_PYTHON, /usr/bin/python3, python3)"

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;

inline double norm_of(const Values& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}
inline Values minus(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  Values difference(a.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference[i] = a[i] - b[i];
  return difference;
}
/// |a - b| / |b|, tensors as wholes.
inline double relative(const Values& a, const Values& b) { return norm_of(minus(a, b)) / norm_of(b); }
inline Values joined(const Named& tensors) {
  Values all;
  for (const auto& [name, x] : tensors) all.insert(all.end(), x.begin(), x.end());
  return all;
}

/// What Marian's files have, though no model here moves it and the oracle does not read it.
inline constexpr std::string_view constant_of_zeros = "final_logits_bias";

/// The tensors of a file whose names begin so, without that beginning.
inline Named read_named(const std::string& path, const std::string& beginning = "") {
  const SafetensorsFile file(path);
  Named tensors;
  for (const StoredTensor& stored : file.tensors()) {
    if (!stored.name.starts_with(beginning) || stored.name == constant_of_zeros) continue;
    const std::vector<float> floats = file.floats(stored.name);
    tensors[stored.name.substr(beginning.size())] = Values(floats.begin(), floats.end());
  }
  return tensors;
}

/// A double that the oracle stored.
inline double scalar(const SafetensorsFile& file, const std::string& name) {
  double x;
  std::memcpy(&x, file.data(file.tensor(name)), sizeof x);
  return x;
}

/// Numbers with commas.
inline std::string listed(const std::vector<double>& numbers) {
  std::string text;
  for (const double x : numbers) text += (text.empty() ? "" : ",") + shortest(x);
  return text;
}

/// The blocks of a network of cells, as cells.py reads them.
inline std::string blocks_of_cells(const subnet::Settings& m) {
  const Space& space = m.space;
  std::string text;
  for (int layer = 0; layer < space.layers(); ++layer) {
    const int first = layer * Space::places_of_cell_block;
    const bool encodes = space.encodes(first);
    const CellSide& side = encodes ? space.encoder_cell : space.decoder_cell;
    const int of_side =
        encodes ? layer : layer - static_cast<int>(space.encoder.size()) / Space::places_of_cell_block;
    const int place = of_side % side.blocks;
    text += fmt::format("{}{} {}", text.empty() ? "" : ",", encodes ? "encoder" : "decoder", place);
    for (int block = first; block < first + 2; ++block) {
      const Candidate& branch = space.candidates(block)[m.choice[block]];
      const int owner = owner_of_unit(space.candidates(block), m.choice[block]);
      text +=
          fmt::format(" {} {} {} {} {}.", branch.branch.input, branch.branch.norm, branch.word(),
                      branch.branch.activation, candidate_name(block, owner < 0 ? m.choice[block] : owner));
    }
    text +=
        fmt::format(" {} {}", space.candidates(first + 2)[m.choice[first + 2]].word(), side.residual[place]);
  }
  return text;
}

/// The words of one side's blocks, with commas.
inline std::string words_of(const subnet::Settings& m, bool encodes) {
  std::vector<std::string> words;
  for (int block = 0; block < m.space.blocks(); ++block)
    if (m.space.encodes(block) == encodes) words.push_back(m.space.candidates(block)[m.choice[block]].word());
  return join(words, ",");
}

/// A network of a space of pictures: where each block's weights stand, its word and its stride.
inline std::map<std::string, std::string> picture_space_settings_of(const subnet::Settings& m) {
  std::string blocks;
  for (int block = 0; block < m.space.blocks(); ++block) {
    const Candidate& chosen = m.space.candidates(block)[m.choice[block]];
    blocks += fmt::format("{}blocks.{}.{}:{}:{}", block > 0 ? "," : "", block, m.choice[block], chosen.word(),
                          chosen.halves ? 2 : 1);
  }
  return {{"kind", "picture_space"},
          {"heads", "1"},
          {"norm_epsilon", shortest(m.norm_epsilon)},
          {"norm_momentum", shortest(m.norm_momentum)},
          {"channels", std::to_string(m.channels)},
          {"mean", listed(m.mean)},
          {"deviation", listed(m.deviation)},
          {"blocks", blocks}};
}

/// What the oracle is told of the model: what all kinds have, and what each alone has.
inline std::map<std::string, std::string> model_settings(const Config& config) {
  const auto text = [](const auto& kind) { return std::string(name_of(kind)); };
  const wide_resnet::Settings& wide = config.model.wide_resnet;
  if (config.model.kind == ModelKind::wide_resnet)
    return {{"kind", text(config.model.kind)},
            {"heads", "1"},
            {"norm_epsilon", shortest(wide.norm_epsilon)},
            {"norm_momentum", shortest(wide.norm_momentum)},
            {"channels", std::to_string(wide.channels)},
            {"mean", listed(wide.mean)},
            {"deviation", listed(wide.deviation)}};
  if (config.model.kind == ModelKind::subnet && config.model.subnet.space.is_of_pictures())
    return picture_space_settings_of(config.model.subnet);
  const BlockSettings& m = block_model(config);
  std::map<std::string, std::string> all{{"kind", text(config.model.kind)},
                                         {"heads", std::to_string(m.heads)},
                                         {"norm", text(m.norm)},
                                         {"norm_epsilon", shortest(m.norm_epsilon)},
                                         {"mlp", text(m.mlp)},
                                         {"padding", std::to_string(config.data.special.padding)}};
  const gpt::Settings& gpt = config.model.gpt;
  const transformer::Settings& pairs = config.model.transformer;
  switch (config.model.kind) {
    case ModelKind::gpt:
      all.insert({{"key_value_heads", std::to_string(gpt.key_value_heads)},
                  {"positions", text(gpt.positions)},
                  {"rotary_base", shortest(gpt.rotary_base)}});
      break;
    case ModelKind::transformer:
      all.insert({{"order", text(pairs.order)},
                  {"positions", text(pairs.positions)},
                  {"first_position", std::to_string(pairs.first_position)},
                  {"scaled", pairs.scaled ? "1" : "0"}});
      break;
    case ModelKind::vit:
      all.insert({{"channels", std::to_string(config.model.vit.channels)},
                  {"mean", listed(config.model.vit.mean)},
                  {"deviation", listed(config.model.vit.deviation)}});
      break;
    case ModelKind::subnet:
      all["kind"] = reads_pairs(config) ? "subnet_of_pairs" : "subnet_of_texts";
      all["encoder"] = words_of(config.model.subnet, true);
      all["decoder"] = words_of(config.model.subnet, false);
      break;
    case ModelKind::bert:
    case ModelKind::evolved_transformer:
    case ModelKind::wide_resnet:
    case ModelKind::supernet:
      break;
  }
  if (config.model.kind == ModelKind::subnet && config.model.subnet.space.has_cells()) {
    all["kind"] = "cells";
    all["blocks"] = blocks_of_cells(config.model.subnet);
  }
  return all;
}

/// Adds the fields of all steps.
inline void add_fields(std::vector<TensorToStore>& stored, const Batches& batches) {
  for (const Field& field : batches.fields) {
    std::vector<std::int64_t> shape{batches.steps, batches.batch};
    for (int i = 0; i < field.shape.rank; ++i) shape.push_back(field.shape[i]);
    stored.push_back({std::string(field.name), field.type == DType::u8 ? StoredType::u8 : StoredType::i32,
                      shape, batches.of_step(field, 0)});
  }
}

/// One training that both programs do: a configuration, batches, a rate for each step.
struct TorchTask {
  Config config;
  Batches batches;
  std::vector<double> rates;
  Folder folder{};

  TorchTask(const Config& given, int steps, int ignored, std::vector<double> all_rates)
      : config(resolve(given)), batches(random_batches(config, steps, ignored)), rates(std::move(all_rates)) {
    // Initial norms are ones and biases zeros, where a forgotten one would not show: all weights are moved a
    // little.
    Worker worker(config, {});
    save_weights(worker, folder / "initial.safetensors");
    const SafetensorsFile file(folder / "initial.safetensors");
    std::vector<std::vector<float>> values;
    std::vector<TensorToStore> stored;
    for (const StoredTensor& tensor : file.tensors()) {
      if (tensor.name == constant_of_zeros) continue;
      values.push_back(file.floats(tensor.name));
      const RandomStream stream{config.seed, purpose_of("moved " + tensor.name)};
      for (std::size_t i = 0; i < values.back().size(); ++i)
        values.back()[i] += static_cast<float>(0.05 * stream.normal(i));
      stored.push_back({tensor.name, StoredType::f32, tensor.shape, nullptr});
    }
    for (std::size_t i = 0; i < stored.size(); ++i) stored[i].data = values[i].data();
    write_safetensors(start(), {{"format", "pt"}}, stored);
    add_fields(stored, batches);
    write_safetensors(folder / "input.safetensors", metadata(), stored);
  }
  std::string start() const { return folder / "start.safetensors"; }
  int steps() const { return static_cast<int>(rates.size()); }

  std::map<std::string, std::string> metadata() const {
    const OptimizerConfig& o = config.optimizer;
    std::map<std::string, std::string> all = model_settings(config);
    all.insert({{"batches", "each"},
                {"micro_batch", std::to_string(config.train.micro_batch)},
                {"steps", std::to_string(steps())},
                {"rate", listed(rates)},
                {"keep", "last"},
                {"clip", shortest(config.train.clip)},
                {"label_smoothing", shortest(config.train.label_smoothing)},
                {"optimizer", std::string(name_of(o.kind))},
                {"beta1", shortest(o.beta1)},
                {"beta2", shortest(o.beta2)},
                {"epsilon", shortest(o.epsilon)},
                {"weight_decay", shortest(o.weight_decay)},
                {"momentum", shortest(o.momentum)},
                {"nesterov", o.nesterov ? "1" : "0"}});
    return all;
  }
  /// What PyTorch made of it.
  std::string answered(const std::string& precision) const { return folder / (precision + ".safetensors"); }
};

/// Has PyTorch do the tasks of these folders, each in every precision, in one process: to import it takes
/// longer than to compute.
inline void ask_torch(const std::vector<std::string>& folders, const std::string& precisions) {
  std::string command =
      "'" + python() + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/oracle.py' --precision " + precisions;
  for (const std::string& folder : folders) command += " '" + folder + "'";
  ASSERT_TRUE(runs(command, false)) << command;
}

/// What we make of it.
struct Answer {
  std::vector<StepScalars> steps;
  /// Logits of the first sample, before any update, token by token through the caches; none where the model
  /// does not continue texts.
  Values logits;
  Values losses;    ///< losses of all targets of the first step
  Named gradients;  ///< mean gradients of the first step
  Named weights;    ///< after the last step
};
inline Values generated_logits(const TorchTask& task, const Config& config, Worker& worker) {
  Generator generator(config, worker);
  Values all;
  for (std::int64_t i = 0; i < config.data.sequence; ++i) {
    const std::vector<float> logits = generator.append({task.batches.numbers(field::tokens, 0)[i]});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}
inline Answer answer_of(const TorchTask& task, Precision precision) {
  Config config = task.config;
  config.train.precision = precision;
  Answer answer;
  {
    Worker worker(config, {});
    read_weights(worker, task.start());
    if (worker.stage().model().continuation()) answer.logits = generated_logits(task, config, worker);
    Feeder feeder(worker, task.batches);
    const StepScalars scalars = feeder.step(0, 0);
    PassRooms& rooms = worker.executor().actions().rooms_of(worker.training());
    Tape& tape = *rooms.slot(0).tape;
    for (int i = 0; i < worker.layout().micro_batches(); ++i) {
      rooms.set_micro_batch(tape, feeder.load(0, 0), i);
      std::vector<float> losses(tape.losses.count());
      worker.backend().download(tape.losses, losses.data());
      answer.losses.insert(answer.losses.end(), losses.begin(), losses.end());
    }
    // The file of weights knows every tensor's name and place: gradients take the weights' places and go the
    // same way.
    for (int index : worker.stage().local_units()) {
      Unit& unit = worker.stage().unit(index);
      if (unit.flat_count() == 0) continue;
      if (unit.dtype() == DType::f32) worker.backend().copy(unit.gradients().root(0), unit.flat_values());
      for (const auto& [name, slot] : worker.residency().shares().of(index).states())
        if (name == "master") worker.backend().copy(unit.gradients().root(0), slot);
    }
    save_weights(worker, task.folder / "gradients.safetensors");
    answer.gradients = read_named(task.folder / "gradients.safetensors");
    // Running statistics travel with gradients, and have none.
    std::erase_if(answer.gradients, [](const auto& tensor) {
      return tensor.first.ends_with("running_mean") || tensor.first.ends_with("running_var");
    });
    const double mean =
        static_cast<double>(targets_of_step(worker.stage())) / static_cast<double>(scalars.valid);
    for (auto& [name, gradient] : answer.gradients)
      for (double& g : gradient) g *= mean;
  }
  Worker worker(config, {});
  read_weights(worker, task.start());
  Feeder feeder(worker, task.batches);
  for (int step = 0; step < task.steps(); ++step) answer.steps.push_back(feeder.step(step, task.rates[step]));
  save_weights(worker, task.folder / "end.safetensors");
  answer.weights = read_named(task.folder / "end.safetensors");
  return answer;
}

}  // namespace mindpipe::oracle
