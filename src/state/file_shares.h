#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "comm/grid.h"
#include "state/shard_map.h"

// Who brings what of a run's state into a file that holds it as whole tensors.
namespace mindpipe {

/// A tensor of a file: one state of a parameter's pieces, whole, in f32. A checkpoint has a tensor for each
/// piece.
struct SavedTensor {
  std::string path;        ///< "/model/layers.0.mlp.up.weight", "/optim/m/..."
  std::string_view state;  ///< a name of state_names
  WholeTensor tensor;
  std::int64_t bytes() const { return tensor.count() * static_cast<std::int64_t>(sizeof(float)); }
};
/// All tensors of a run's state, which keeps `states`, in the order of the file: weights (masters where
/// values are rounded), then what the optimizer keeps of them.
std::vector<SavedTensor> saved_tensors(const std::vector<std::string_view>& states, const Model& model);
/// The weights (masters where values are rounded) in the tensors of files that others read.
std::vector<SavedTensor> weights_for_files(const std::vector<std::string_view>& states, const Model& model);

/// The ranks of one stage, which have its units between them.
struct StageRanks {
  int tensor = 1, data = 1;  ///< degrees
  bool sharded = false;      ///< whether each data rank has a share of the optimizer's state
  int size() const { return tensor * data; }
  int number(int tensor_rank, int data_rank) const { return data_rank * tensor + tensor_rank; }
  int tensor_rank(int number) const { return number % tensor; }
  int data_rank(int number) const { return number / tensor; }
};

/// Elements of a saved tensor that one rank of the stage writes at once: whole rows, or a part of one row.
struct FilePiece {
  int tensor = 0;  ///< index among the saved tensors
  Elements stored;
  int writer = 0;  ///< number in the stage
  std::int64_t bytes() const { return stored.count() * static_cast<std::int64_t>(sizeof(float)); }
};

/// Bytes of the longest file_piece; but for the last of a tensor none is shorter than a quarter of it. Files
/// of weights are written by ranks that train on at once, and have shorter ones, to take little memory.
inline constexpr std::int64_t longest_file_piece = std::int64_t{4} << 20,
                              longest_piece_of_weights = std::int64_t{1} << 19;

/// Cuts the tensors of a stage's units into file_pieces and shares them out among its ranks: to one that has
/// most of what it writes, and to all about equally. The same on every rank of the stage.
/// `is_here`: for each unit, whether the stage speaks for it.
std::vector<FilePiece> shared_out(const Model& model, const std::vector<SavedTensor>& tensors,
                                  const StageRanks& ranks, const std::vector<char>& is_here,
                                  std::int64_t longest = longest_file_piece);

/// What rank `from` of the stage gives of a file_piece to its writer: every element has one giver.
std::vector<ElementRun> given_by(const Model& model, const std::vector<SavedTensor>& tensors,
                                 const StageRanks& ranks, const FilePiece& file_piece, int from);

}  // namespace mindpipe
