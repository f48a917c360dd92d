#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint_directory.h"
#include "state/whole_tensor.h"

namespace mindpipe {

/// A checkpoint, all of whose bytes are as they were written.
struct WholeCheckpoint {
  explicit WholeCheckpoint(const std::string& directory);
  std::vector<float> words(const CheckpointTensor& tensor) const;
  /// Reads elements [first, first + count) of a tensor of files for others, as they have them: of the
  /// checkpoint's model, or of one that has some of its units.
  void read(const WholeTensor& tensor, const Model& model, std::int64_t first, std::int64_t count,
            float* to) const;
  Manifest manifest;
  CheckpointFile file;
  std::map<std::string, CheckpointTensor> tensors;

 private:
  const CheckpointTensor& stored(const WholeTensor& tensor, const StackedPiece& piece,
                                 const Model& model) const;
};

/// Warns of a checkpoint that was marked as suspect.
void warn_of_suspicion(const std::string& directory);

/// Whether a directory is a checkpoint.
bool is_checkpoint(const std::string& directory);

/// The settings of the checkpoint in a directory, with others in the place of some ("train.steps=20").
Config settings_of_checkpoint(const std::string& directory, const Manifest& manifest,
                              const std::vector<std::string>& overrides = {});

}  // namespace mindpipe
