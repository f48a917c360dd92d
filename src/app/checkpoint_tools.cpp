#include "app/checkpoint_tools.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <vector>

#include "app/main_verb.h"
#include "comm/mpi.h"
#include "core/text.h"
#include "io/checkpoint_directory.h"
#include "io/safetensors.h"
#include "plan/cost_model.h"
#include "runtime/checkpoint_reader.h"

namespace mindpipe {
namespace {

/// A checkpoint, all of whose bytes are as they were written.
struct WholeCheckpoint {
  explicit WholeCheckpoint(const std::string& directory)
      : manifest(read_manifest(directory)), file(directory, manifest.file_bytes) {
    const std::string damage = damage_of(World{}, manifest, directory, 2);
    MP_REQUIRE(damage.empty(), Exit::checkpoint_corrupt, "{}", damage);
    for (const CheckpointTensor& tensor : manifest.tensors) tensors[tensor.path] = tensor;
  }
  std::vector<float> words(const CheckpointTensor& tensor) const {
    std::vector<float> words(static_cast<std::size_t>(tensor.bytes) / sizeof(float));
    file.read(tensor.offset, words.data(), tensor.bytes);
    return words;
  }

  Manifest manifest;
  CheckpointFile file;
  std::map<std::string, CheckpointTensor> tensors;
};

/// How two tensors of one shape differ, in words; empty: in no bit.
std::string difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) return "";
  double largest = 0, squares = 0, norm = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - b[i];
    count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 ? 1 : 0;
    largest = std::isnan(apart) ? apart : std::max(largest, std::abs(apart));
    squares += apart * apart;
    norm += static_cast<double>(a[i]) * a[i];
  }
  return fmt::format("{} of {} elements differ, by {:.3g} at most, {:.3g} of the norm", count, a.size(),
                     largest, norm > 0 ? std::sqrt(squares / norm) : std::numeric_limits<double>::infinity());
}

/// Brings a tensor of a file for others together from the checkpoint's tensors.
std::vector<float> brought_together(const WholeTensor& tensor, const Model& model,
                                    const WholeCheckpoint& checkpoint) {
  std::vector<float> whole(static_cast<std::size_t>(tensor.count()));
  for (const StackedPiece& piece : tensor.pieces) {
    const Unit& unit = *model.units()[piece.unit];
    const std::string path =
        "/model/" + unit.name() + "." + unit.params()[piece.param].pieces[piece.piece].name;
    const auto stored = checkpoint.tensors.find(path);
    MP_REQUIRE(stored != checkpoint.tensors.end(), Exit::checkpoint_corrupt, "{}: has no {}",
               checkpoint.file.path(), path);
    const std::vector<float> words = checkpoint.words(stored->second);
    MP_REQUIRE(
        (piece.rows_above * tensor.width()) + static_cast<std::int64_t>(words.size()) <= tensor.count(),
        Exit::checkpoint_corrupt, "{}: {} is larger than the model's", checkpoint.file.path(), path);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) + piece.rows_above * tensor.width();
      whole[tensor.columns == 0 ? at : stored_at(tensor, at / tensor.width(), at % tensor.width())] =
          words[i];
    }
  }
  return whole;
}

}  // namespace

std::string checkpoint_at(const std::string& path) {
  if (::access((path + "/" + Manifest::name).c_str(), F_OK) == 0) return path;
  const std::vector<CheckpointPlace> places = checkpoints_in(path);
  MP_REQUIRE(!places.empty(), Exit::input_missing,
             "{}: is neither a checkpoint nor a run directory that has one", path);
  return places.front().path;
}

bool print_difference(const std::string& a, const std::string& b) {
  const WholeCheckpoint one(a), other(b);
  std::string text;
  std::size_t equal = 0;
  for (const auto& [path, tensor] : one.tensors) {
    const auto there = other.tensors.find(path);
    if (there == other.tensors.end()) text += fmt::format("{}: only in {}\n", path, a);
    else if (there->second.shape != tensor.shape) text += fmt::format("{}: of another shape\n", path);
    else if (const std::string apart = difference(one.words(tensor), other.words(there->second));
             !apart.empty())
      text += fmt::format("{}: {}\n", path, apart);
    else ++equal;
  }
  for (const auto& [path, tensor] : other.tensors)
    if (one.tensors.count(path) == 0) text += fmt::format("{}: only in {}\n", path, b);
  const bool differ = !text.empty() || one.manifest.progress.step != other.manifest.progress.step;
  print(text + fmt::format("{} tensors are equal; steps {} and {}\n", equal, one.manifest.progress.step,
                           other.manifest.progress.step));
  return differ;
}

std::string export_weights(const std::string& directory, const std::string& output) {
  const WholeCheckpoint checkpoint(directory);
  std::vector<std::string> checked;  // config.yaml has no CRC; what the manifest repeats of it has
  for (const auto& [key, value] : checkpoint.manifest.settings) checked.push_back(key + "=" + value);
  const std::string settings = directory + "/config.yaml";
  std::error_code none;
  MP_REQUIRE(std::filesystem::symlink_status(settings, none).type() == std::filesystem::file_type::regular,
             Exit::checkpoint_corrupt, "{}: is no regular file", settings);
  const Config config = read_config(settings, checked);
  CostModel costs(config, make_layout(config, {}));
  std::map<std::string, WholeTensor> tensors;
  std::vector<StoredTensor> stored;
  for (WholeTensor& tensor : tensors_for_files(costs.model())) {
    stored.push_back({tensor.name, StoredType::f32, tensor.shape()});
    tensors.emplace(tensor.name, std::move(tensor));
  }
  SafetensorsWriter file(output, {{"format", "pt"}}, std::move(stored));
  for (const StoredTensor& tensor : file.tensors()) {
    const std::vector<float> words = brought_together(tensors.at(tensor.name), costs.model(), checkpoint);
    file.write(words.data(), words.size() * sizeof(float));
  }
  file.commit();
  return fmt::format("{}: {} tensors of step {}\n", output, tensors.size(),
                     checkpoint.manifest.progress.step);
}

}  // namespace mindpipe
