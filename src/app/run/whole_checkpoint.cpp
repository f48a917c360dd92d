#include "app/run/whole_checkpoint.h"

#include <filesystem>

#include "config/document.h"
#include "runtime/checkpoint_reader.h"
#include "state/file_shares.h"

namespace mindpipe {

WholeCheckpoint::WholeCheckpoint(const std::string& directory)
    : manifest(read_manifest(directory)), file(directory, manifest.file_bytes) {
  const std::string damage = damage_of(World{}, manifest, directory, 2);
  MP_REQUIRE(damage.empty(), Exit::checkpoint_corrupt, "{}", damage);
  for (const CheckpointTensor& tensor : manifest.tensors) tensors[tensor.path] = tensor;
}

std::vector<float> WholeCheckpoint::words(const CheckpointTensor& tensor) const {
  std::vector<float> words(static_cast<std::size_t>(tensor.bytes) / sizeof(float));
  file.read(tensor.offset, words.data(), tensor.bytes);
  return words;
}

std::vector<float> WholeCheckpoint::brought_together(const WholeTensor& tensor, const Model& model) const {
  std::vector<float> whole(static_cast<std::size_t>(tensor.count()));
  std::int64_t brought = 0;
  for (const StackedPiece& piece : tensor.pieces) {
    const Unit& unit = *model.units()[piece.unit];
    const std::string path =
        "/model/" + unit.name() + "." + unit.params()[piece.param].pieces[piece.piece].name;
    const auto stored = tensors.find(path);
    MP_REQUIRE(stored != tensors.end(), Exit::checkpoint_corrupt, "{}: has no {}", file.path(), path);
    const std::vector<float> words = this->words(stored->second);
    MP_REQUIRE(
        (piece.rows_above * tensor.width()) + static_cast<std::int64_t>(words.size()) <= tensor.count(),
        Exit::checkpoint_corrupt, "{}: {} is larger than the model's", file.path(), path);
    brought += static_cast<std::int64_t>(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) + piece.rows_above * tensor.width();
      whole[tensor.columns == 0 ? at : stored_at(tensor, at / tensor.width(), at % tensor.width())] =
          words[i];
    }
  }
  MP_REQUIRE(brought == tensor.count(), Exit::checkpoint_corrupt,
             "{}: what makes {} is smaller than the model's", file.path(), tensor.name);
  return whole;
}

bool is_checkpoint(const std::string& directory) {
  std::error_code none;
  return std::filesystem::exists(directory + "/" + Manifest::name, none);
}

Config settings_of_checkpoint(const std::string& directory, const Manifest& manifest,
                              const std::vector<std::string>& overrides) {
  std::vector<std::string> checked;  // config.yaml has no CRC; what the manifest repeats of it has
  for (const auto& [key, value] : manifest.settings) {  // as files have them, and overrides have no quotes
    const Node node = parse_document(value, directory + ": " + key, false);
    checked.push_back(key + "=" + (node.kind == Node::Kind::text ? node.text : value));
  }
  checked.insert(checked.end(), overrides.begin(), overrides.end());
  const std::string settings = directory + "/config.yaml";
  std::error_code none;
  MP_REQUIRE(std::filesystem::symlink_status(settings, none).type() == std::filesystem::file_type::regular,
             Exit::checkpoint_corrupt, "{}: is no regular file", settings);
  return read_config(settings, checked);
}

}  // namespace mindpipe
