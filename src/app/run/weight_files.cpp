#include "app/run/weight_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "config/sections/export.h"
#include "core/strict_json.h"
#include "io/file.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

const char* const index_name = "/model.safetensors.index.json";

/// A tensor for a file, and the name that the model has for it.
struct Named {
  std::string own;
  StoredTensor stored;
};

std::uint64_t bytes_of(const StoredTensor& tensor) {
  std::uint64_t bytes = bytes_of(tensor.type);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

/// All tensors of a model's files, by the names that they have there.
std::vector<Named> named_tensors(const Model& model, const ExportConfig& how, StoredType type) {
  std::vector<Named> all;
  for (const WholeTensor& tensor : tensors_for_files(model)) {
    const StackedPiece& piece = tensor.pieces.front();
    const std::string& part = model.units()[piece.unit]->params()[piece.param].pieces[piece.piece].name;
    const std::string name =
        how.names == ExportNames::mindspore ? name_of_mindspore(tensor.name, part) : tensor.name;
    all.push_back({tensor.name, {name, type, tensor.shape()}});
  }
  for (const auto& [name, shape] : model.file_names().zeros) all.push_back({"", {name, type, shape}});
  std::sort(all.begin(), all.end(),
            [](const Named& a, const Named& b) { return a.stored.name < b.stored.name; });
  return all;
}

/// "model-00002-of-00003.safetensors": a part of ours, or of transformers'.
bool is_part(const std::string& name) {
  std::string_view rest = name;
  const auto skip = [&](std::string_view word) {
    const bool is_next = rest.starts_with(word);
    if (is_next) rest.remove_prefix(word.size());
    return is_next;
  };
  const auto skip_digits = [&] {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(digits);
    return digits >= 5;
  };
  return (skip("model-") || skip("weights-")) && skip_digits() && skip("-of-") && skip_digits() &&
         rest == ".safetensors";
}

/// Files that an index names in its directory; none where there is no index that can be read.
std::set<std::string> parts_of_index(const std::string& directory) {
  std::set<std::string> parts;
  try {
    const nlohmann::json json = read_json_file({.path = directory + index_name, .expected = "an index"});
    for (const auto& [name, part] : json.at("weight_map").items()) {
      const std::string file = part.get<std::string>();
      if (file.find('/') == file.npos && file.ends_with(".safetensors")) parts.insert(file);
    }
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
  return parts;
}

}  // namespace

std::string name_of_mindspore(const std::string& name, const std::string& part) {
  const std::string stem = part.substr(0, part.rfind('.'));
  const bool is_norm = stem.find("norm") != stem.npos;
  const bool is_table = stem == "embedding" || stem == "positions" || stem == "types";
  const auto ends_so = [&](const char* theirs, const char* ours, bool holds) {
    return holds && name.ends_with(theirs) ? name.substr(0, name.size() - std::strlen(theirs)) + ours
                                           : std::string();
  };
  for (const std::string& found : {ends_so(".weight", ".gamma", is_norm), ends_so(".bias", ".beta", is_norm),
                                   ends_so(".running_mean", ".moving_mean", is_norm),
                                   ends_so(".running_var", ".moving_variance", is_norm),
                                   ends_so(".weight", ".embedding_table", is_table)})
    if (!found.empty()) return found;
  return name;
}

WeightFiles WeightFiles::one(const Model& model, ExportConfig how, const std::string& path) {
  WeightFiles files;
  how.part = std::numeric_limits<std::int64_t>::max();
  files.plan(model, how, "");
  files.parts_.front().path = path;
  return files;
}

WeightFiles WeightFiles::in_directory(const Model& model, const ExportConfig& how,
                                      const std::string& directory, const std::string& stem) {
  WeightFiles files;
  files.directory_ = directory;
  files.plan(model, how, stem);
  return files;
}

std::string WeightFiles::name() const {
  return parts_.size() == 1 ? parts_.front().path : directory_ + index_name;
}

std::string WeightFiles::stem_for(const std::string& directory) {
  const std::set<std::string> there = parts_of_index(directory);
  const bool is_taken = std::any_of(there.begin(), there.end(),
                                    [](const std::string& part) { return part.starts_with("model-"); });
  return is_taken ? "weights" : "model";
}

void WeightFiles::plan(const Model& model, const ExportConfig& how, const std::string& stem) {
  if (how.precision == Precision::bf16) type_ = StoredType::bf16;
  std::uint64_t filled = 0;
  for (Named& tensor : named_tensors(model, how, type_)) {
    const std::uint64_t bytes = bytes_of(tensor.stored);
    if (parts_.empty() || (filled > 0 && filled + bytes > static_cast<std::uint64_t>(how.part))) {
      parts_.emplace_back();
      filled = 0;
    }
    filled += bytes;
    own_names_[tensor.stored.name] = tensor.own;
    parts_.back().tensors.push_back(std::move(tensor.stored));
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.path =
        directory_ + "/" +
        (parts_.size() == 1 ? "model.safetensors"
                            : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, parts_.size()));
    part.header = safetensors_header(part.path, {{"format", "pt"}}, part.tensors);
    const auto data = static_cast<std::int64_t>(part.header.size());
    part.bytes = data + static_cast<std::int64_t>(part.tensors.back().end);
    for (const StoredTensor& tensor : part.tensors)
      places_[own_names_.at(tensor.name)] = {static_cast<int>(i),
                                             data + static_cast<std::int64_t>(tensor.begin)};
  }
}

/// Rounds to the nearest, of two to the even one.
void WeightFiles::convert(void* words, std::int64_t count) const {
  if (type_ == StoredType::f32) return;
  auto* bytes = static_cast<std::byte*>(words);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + 4 * i, 4);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const auto half =
        static_cast<std::uint16_t>(is_nan ? word >> 16 | 0x40u : (word + 0x7fffu + (word >> 16 & 1)) >> 16);
    std::memcpy(bytes + 2 * i, &half, 2);
  }
}

void WeightFiles::settle() const {
  if (directory_.empty()) return;
  std::error_code none;
  std::set<std::string> old = parts_of_index(directory_);
  // An export that was cut off may have left parts that no index names.
  for (const auto& entry : fs::directory_iterator(directory_, none))
    if (is_part(entry.path().filename())) old.insert(entry.path().filename());
  if (parts_.size() == 1) {
    fs::remove(directory_ + index_name, none);
  } else {
    nlohmann::ordered_json json;
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) {
      const std::string file = fs::path(part.path).filename();
      bytes += part.tensors.back().end;
      old.erase(file);
      for (const StoredTensor& tensor : part.tensors) json["weight_map"][tensor.name] = file;
    }
    json["metadata"]["total_size"] = bytes;
    replace_file(directory_ + index_name, json.dump(2) + "\n");
    fs::remove(directory_ + "/model.safetensors", none);
  }
  for (const std::string& file : old) fs::remove(directory_ + "/" + file, none);
}

}  // namespace mindpipe
