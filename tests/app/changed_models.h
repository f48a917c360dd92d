#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/golden_models.h"
#include "corpus/files.h"
#include "io/safetensors.h"

// The models of golden_models.h with other tensors.
namespace mindpipe {

/// A tensor of a file that is changed.
struct Loose {
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};
using LooseTensors = std::map<std::string, Loose>;

inline LooseTensors tensors_in(const std::string& path) {
  const SafetensorsFile file(path);
  LooseTensors all;
  for (const StoredTensor& stored : file.tensors())
    all[stored.name] = {
        stored.type, stored.shape, {file.data(stored), file.data(stored) + (stored.end - stored.begin)}};
  return all;
}

inline void write(const LooseTensors& tensors, const std::string& path) {
  std::vector<TensorToStore> stored;
  for (const auto& [name, loose] : tensors)
    stored.push_back({name, loose.type, loose.shape, loose.bytes.data()});
  write_safetensors(path, {{"format", "pt"}}, stored);
}

/// The tensors of a directory, with the parts that its index names.
inline LooseTensors tensors_of_directory(const std::string& directory) {
  const std::string index = directory + "/model.safetensors.index.json";
  if (!std::filesystem::exists(index)) return tensors_in(directory + "/model.safetensors");
  LooseTensors all;
  const nlohmann::json map = nlohmann::json::parse(read_file(index)).at("weight_map");
  for (const auto& [name, part] : map.items())
    all.merge(tensors_in(directory + "/" + part.get<std::string>()));
  return all;
}

/// A directory with the tensors of another, changed.
template <class Change>
Config changed_model(const std::string& name, const Folder& folder, Change change) {
  const LooseTensors all = tensors_in(golden_folder + name + "/model.safetensors");
  LooseTensors made;
  for (const auto& [tensor, loose] : all) change(made, tensor, loose);
  write(made, folder / "model.safetensors");
  Config config = imported(golden_folder + name);
  config.run.weights = folder / "model.safetensors";
  return config;
}

inline void expect_the_same(const Config& config, const std::string& name) {
  const std::string directory = golden_folder + name;
  EXPECT_EQ(losses_of(config, directory).all, losses_of(imported(directory), directory).all) << name;
}

inline std::string refusal_of_weights(const Config& config, Exit code) {
  try {
    Worker worker(config, {});
    begin_with_weights(worker);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  return "accepted";
}

}  // namespace mindpipe
