#include "app/run/whole_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "config/config.h"
#include "config/document.h"
#include "core/log.h"
#include "runtime/checkpoint_reader.h"

namespace mindpipe {

WholeCheckpoint::WholeCheckpoint(const std::string& directory)
    : manifest(read_manifest(directory)), file(directory, manifest.file_bytes) {
  const std::string damage = damage_of(World{}, manifest, directory, 2);
  MP_REQUIRE(damage.empty(), Exit::checkpoint_corrupt, "{}", damage);
  for (const CheckpointTensor& tensor : manifest.tensors) tensors[tensor.path] = tensor;
  warn_of_suspicion(directory);
}

std::vector<float> WholeCheckpoint::words(const CheckpointTensor& tensor) const {
  std::vector<float> words(static_cast<std::size_t>(tensor.bytes) / sizeof(float));
  file.read(tensor.offset, words.data(), tensor.bytes);
  return words;
}

namespace {

constexpr auto word_bytes = static_cast<std::int64_t>(sizeof(float));

/// Elements of a piece of a tensor, padding left out.
std::int64_t elements_of(const WholeTensor& tensor, const StackedPiece& piece, const Model& model) {
  const auto& of = model.units()[piece.unit]->params()[piece.param].pieces[piece.piece];
  return (of.rows - of.padding) * tensor.width();
}

/// Reads elements of rows that lie across the tensor's file: of each row those of the columns that are asked
/// for, in one call.
class ReadAcross {
 public:
  ReadAcross(const CheckpointFile& file, const WholeTensor& tensor, std::int64_t first, std::int64_t count,
             float* to)
      : file_(file),
        tensor_(tensor),
        first_(first),
        count_(count),
        to_(to),
        column_(first / tensor.rows),
        line_(static_cast<std::size_t>((first + count - 1) / tensor.rows + 1 - column_)) {}

  void rows(std::int64_t offset, std::int64_t above, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      file_.read(offset + (row * tensor_.columns + column_) * word_bytes, line_.data(),
                 std::ssize(line_) * word_bytes);
      for (std::int64_t i = 0; i < std::ssize(line_); ++i) {
        const std::int64_t at = (column_ + i) * tensor_.rows + above + row - first_;
        if (at >= 0 && at < count_) to_[at] = line_[static_cast<std::size_t>(i)];
      }
    }
  }

 private:
  const CheckpointFile& file_;
  const WholeTensor& tensor_;
  std::int64_t first_, count_;
  float* to_;
  std::int64_t column_;
  std::vector<float> line_;
};

}  // namespace

const CheckpointTensor& WholeCheckpoint::stored(const WholeTensor& tensor, const StackedPiece& piece,
                                                const Model& model) const {
  const Unit& unit = *model.units()[piece.unit];
  const std::string path =
      "/model/" + unit.name() + "." + unit.params()[piece.param].pieces[piece.piece].name;
  const auto found = tensors.find(path);
  MP_REQUIRE(found != tensors.end(), Exit::checkpoint_corrupt, "{}: has no {}", file.path(), path);
  MP_REQUIRE(found->second.bytes == elements_of(tensor, piece, model) * word_bytes, Exit::checkpoint_corrupt,
             "{}: {} is of another size than the model's", file.path(), path);
  return found->second;
}

void WholeCheckpoint::read(const WholeTensor& tensor, const Model& model, std::int64_t first,
                           std::int64_t count, float* to) const {
  std::optional<ReadAcross> across;
  if (tensor.transposed && tensor.columns > 0 && count > 0) across.emplace(file, tensor, first, count, to);
  for (const StackedPiece& piece : tensor.pieces) {
    const CheckpointTensor& there = stored(tensor, piece, model);
    const std::int64_t begin = piece.rows_above * tensor.width(),
                       end = begin + elements_of(tensor, piece, model), from = std::max(first, begin),
                       until = std::min(first + count, end);
    if (across) across->rows(there.offset, piece.rows_above, (end - begin) / tensor.columns);
    else if (from < until)
      file.read(there.offset + (from - begin) * word_bytes, to + (from - first), (until - from) * word_bytes);
  }
}

void warn_of_suspicion(const std::string& directory) {
  if (const std::string suspicion = suspicion_of(directory); !suspicion.empty())
    warning("{}: {}", directory, suspicion);
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
