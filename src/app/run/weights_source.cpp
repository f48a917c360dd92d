#include "app/run/weights_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/strict_json.h"
#include "core/text.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

/// The name that a tensor has today: norms of old files have gamma and beta, as those of MindSpore, whose
/// tables are embedding_table.
std::string modern(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> words{
      {{".gamma", ".weight"},
       {".beta", ".bias"},
       {".embedding_table", ".weight"},
       {".moving_mean", ".running_mean"},
       {".moving_variance", ".running_var"}}};
  for (const auto& [old, today] : words)
    if (name.ends_with(old)) return name.substr(0, name.size() - old.size()) + std::string(today);
  return name;
}

bool is_of_zeros(const SafetensorsFile& file, const std::string& name) {
  const std::vector<float> values = file.floats(name);
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

std::vector<std::string> sorted(const std::map<std::string, std::string>& found) {
  std::vector<std::string> all;
  for (const auto& [name, sentence] : found) all.push_back(sentence);
  return all;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*'), last = pattern.rfind('*');
  if (star == pattern.npos) return pattern == name;
  const std::string_view begin = pattern.substr(0, star), end = pattern.substr(last + 1);
  if (name.size() < begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return false;
  name = name.substr(begin.size(), name.size() - begin.size() - end.size());
  // Each piece between two stars may stand where it first does.
  for (std::size_t at = star; at < last;) {
    const std::size_t next = pattern.find('*', at + 1);
    const std::string_view piece = pattern.substr(at + 1, next - at - 1);
    const std::size_t found = name.find(piece);
    if (found == name.npos) return false;
    name.remove_prefix(found + piece.size());
    at = next;
  }
  return true;
}

std::string kinds_of(const std::vector<std::string>& names) {
  std::map<std::string, int> kinds;
  for (const std::string& name : names) {
    std::string kind;
    for (const char c : name)
      if (c < '0' || c > '9') kind += c;
      else if (!kind.ends_with('N')) kind += 'N';
    ++kinds[kind];
  }
  std::vector<std::string> words;
  for (const auto& [kind, count] : kinds)
    words.push_back(kind + (count > 1 ? fmt::format(" ({} of them)", count) : ""));
  return join(words, ", ");
}

std::string first_three(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(names.size(), shown));
  return join(first, ", ") +
         (names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string());
}

WeightsSource::WeightsSource(const std::string& path, const Model& model, bool new_head) : path_(path) {
  for (WholeTensor& tensor : tensors_for_files(model))
    if (!new_head || !matches_any(model.file_names().head, tensor.name)) wanted_.push_back(std::move(tensor));
  open(path);
  find_all(model);
}

void WeightsSource::open(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) {
    files_.emplace_back(path);
    return;
  }
  const std::string one = path + "/model.safetensors";
  if (file_is_there(one)) files_.emplace_back(one);
  else open_parts(path);
}

void WeightsSource::open_parts(const std::string& directory) {
  const std::string index = directory + "/model.safetensors.index.json";
  MP_REQUIRE(
      file_is_there(index), Exit::input_missing,
      "{}: has neither model.safetensors nor model.safetensors.index.json (run.weights names a file of "
      "safetensors, a directory with one or with its parts, or a checkpoint)",
      directory);
  const nlohmann::json json =
      read_json_file({.path = index, .expected = "the index of parts of safetensors"});
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  MP_REQUIRE(json.is_object() && map != json.end() && map->is_object(), Exit::bad_data,
             "{}: has no weight_map (expected a mapping of tensors to the files that have them)", index);
  std::map<std::string, const SafetensorsFile*> parts;
  for (const auto& [name, part] : map->items()) {
    MP_REQUIRE(part.is_string(), Exit::bad_data, "{}: tensor '{}' is in no file by name", index, name);
    const std::string file = part.get<std::string>();
    MP_REQUIRE(file.find('\0') == file.npos, Exit::bad_data,
               "{}: tensor '{}' is in '{}', which no file can be called", index, name, printable(file, 80));
    MP_REQUIRE(!file.empty() && file.find('/') == file.npos && file != "." && file != "..", Exit::bad_data,
               "{}: tensor '{}' is in '{}', which lies outside the directory", index, name, file);
    const SafetensorsFile*& opened = parts[file];
    if (opened == nullptr) {
      MP_REQUIRE(file_is_there(directory + "/" + file), Exit::bad_data, "{}: the part {} is missing", index,
                 file);
      opened = &files_.emplace_back(directory + "/" + file);
    }
    MP_REQUIRE(opened->find(name) != nullptr, Exit::bad_data,
               "{}: tensor '{}' is not in {}, where the index puts it", index, name, file);
  }
}

namespace {

bool holds_weights(StoredType type) {
  return type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16;
}

}  // namespace

/// Two names of one tensor have its values twice, or nobody knows which are meant.
void WeightsSource::require_same(const Place& one, const Place& other) const {
  constexpr std::int64_t at_once = std::int64_t{1} << 16;
  bool same = one.stored->shape == other.stored->shape;
  std::vector<float> mine(at_once), theirs(at_once);
  for (std::int64_t first = 0; same && first < one.stored->count(); first += at_once) {
    const std::int64_t some = std::min(at_once, one.stored->count() - first);
    one.file->read(*one.stored, first, 1, some, mine.data());
    other.file->read(*other.stored, first, 1, some, theirs.data());
    same = std::equal(mine.begin(), mine.begin() + some, theirs.begin());
    one.file->forget(*one.stored);
    other.file->forget(*other.stored);
  }
  MP_REQUIRE(same, Exit::bad_data,
             "{}: {} and {} differ, which are one tensor of this model; remove the one that is not meant",
             path_, one.stored->name, other.stored->name);
}

/// Takes a tensor for the one of the model that it is, if any.
bool WeightsSource::take(const std::string& name, const Place& place, const Model::FileNames& names) {
  std::string is = modern(name);
  const auto is_wanted = [&](const std::string& one) {
    return std::any_of(wanted_.begin(), wanted_.end(),
                       [&](const WholeTensor& tensor) { return tensor.name == one; });
  };
  const auto second = [&](const std::string& one) {
    const auto found = std::find_if(names.second.begin(), names.second.end(),
                                    [&](const auto& pair) { return pair.first == one; });
    return found == names.second.end() ? std::string() : found->second;
  };
  if (!is_wanted(is) && is_wanted(names.prefix + is)) is = names.prefix + is;
  if (is_wanted(is)) {
    Place& taken = found_[is];
    const bool was_second = taken.stored != nullptr && modern(taken.stored->name) != is &&
                            names.prefix + modern(taken.stored->name) != is;
    MP_REQUIRE(taken.stored == nullptr || was_second, Exit::bad_data, "{}: has {} twice, as {} and as {}",
               path_, is, taken.stored->name, name);
    if (was_second) {
      require_same(place, taken);
      left_out_.push_back(taken.stored->name);
    }
    taken = place;
    return true;
  }
  for (const std::string& one : {is, names.prefix + is}) {
    const std::string first = second(one);
    if (!first.empty() && is_wanted(first)) {
      Place& taken = found_[first];
      if (taken.stored == nullptr) {
        taken = place;
        return true;
      }
      require_same(taken, place);
      left_out_.push_back(name);
      return true;
    }
    const bool holds_zeros = std::any_of(names.zeros.begin(), names.zeros.end(),
                                         [&](const auto& zero) { return zero.first == one; });
    MP_REQUIRE(!holds_zeros || is_of_zeros(*place.file, name), Exit::bad_data,
               "{}: {} is not of zeros, and this model adds none to its logits (set model.logits_bias)",
               path_, name);
    if (holds_zeros || matches_any(names.left_out, one) || !first.empty() || matches_any(names.head, one)) {
      left_out_.push_back(name);
      return true;
    }
  }
  return false;
}

void WeightsSource::find_all(const Model& model) {
  std::map<std::string, std::string> unknown, missing, misshapen;
  for (const SafetensorsFile& file : files_)
    for (const StoredTensor& stored : file.tensors())
      if (!take(stored.name, {&file, &stored}, model.file_names())) unknown[stored.name] = stored.name;
  std::erase_if(wanted_, [&](const WholeTensor& tensor) {
    return found_.count(tensor.name) == 0 && matches_any(model.file_names().optional, tensor.name);
  });
  for (const WholeTensor& tensor : wanted_) {
    const auto found = found_.find(tensor.name);
    if (found == found_.end()) missing[tensor.name] = tensor.name;
    else if (found->second.stored->shape != tensor.shape())
      misshapen[tensor.name] =
          fmt::format("{} ([{}] there, [{}] in the model)", tensor.name,
                      fmt::join(found->second.stored->shape, ", "), fmt::join(tensor.shape(), ", "));
  }
  MP_REQUIRE(
      unknown.empty(), Exit::bad_data,
      "{}: has {}, which the model of this configuration has not (run.weights has all its weights and no "
      "others; mindpipe-train extract takes a network's out of a supernet's)",
      path_, first_three(sorted(unknown)));
  for (const auto& [name, place] : found_)
    MP_REQUIRE(holds_weights(place.stored->type), Exit::bad_data,
               "{}: {} is of type {} (weights are F32, F16 or BF16)", path_, place.stored->name,
               name_of(place.stored->type));
  MP_REQUIRE(missing.empty(), Exit::bad_data,
             "{}: has no {}, which the model of this configuration has (run.weights has all its weights)",
             path_, first_three(sorted(missing)));
  MP_REQUIRE(misshapen.empty(), Exit::bad_data,
             "{}: of another shape than in the model of this configuration: {} (is it the model's own file?)",
             path_, first_three(sorted(misshapen)));
}

/// Elements of a tensor whose pages may stay in memory.
constexpr std::int64_t most_kept = std::int64_t{1} << 18;

void WeightsSource::forget_last() {
  if (last_.stored != nullptr) last_.file->forget(*last_.stored);
  kept_ = 0;
}

/// Each page of the file has some elements of many lines, so a page is read for many at once, and not kept.
void WeightsSource::read_band(const Place& place, std::int64_t first, std::int64_t step, std::int64_t count) {
  constexpr std::int64_t most_values = std::int64_t{1} << 19;
  const std::int64_t lines = std::min(step - first % step, std::max<std::int64_t>(1, most_values / count));
  band_.stored = nullptr;
  band_.values.resize(static_cast<std::size_t>(lines * count));
  std::vector<float> row(static_cast<std::size_t>(lines));
  for (std::int64_t i = 0; i < count; ++i) {
    place.file->read(*place.stored, first + i * step, 1, lines, row.data());
    for (std::int64_t line = 0; line < lines; ++line)
      band_.values[static_cast<std::size_t>(line * count + i)] = row[static_cast<std::size_t>(line)];
    if ((kept_ += step) > most_kept) forget_last();
  }
  band_.stored = place.stored;
  band_.first = first;
  band_.step = step;
  band_.count = count;
  band_.lines = lines;
}

void WeightsSource::read(const WholeTensor& tensor, std::int64_t first, std::int64_t step, std::int64_t count,
                         float* to) {
  const Place& place = found_.at(tensor.name);
  if (place.stored != last_.stored) {
    forget_last();
    last_ = place;
  }
  if (step == 1) {
    if ((kept_ += count) > most_kept) forget_last();
    return place.file->read(*place.stored, first, step, count, to);
  }
  if (!band_.has(place.stored, first, step, count)) read_band(place, first, step, count);
  std::copy_n(band_.values.data() + (first - band_.first) * count, count, to);
}

}  // namespace mindpipe
