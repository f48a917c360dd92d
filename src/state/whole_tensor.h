#pragma once
#include <string>
#include <vector>

#include "models/model.h"

namespace mindpipe {

/// A piece of a parameter, and where it stands in a whole tensor.
struct StackedPiece {
  int unit = 0, param = 0, piece = 0;
  std::int64_t rows_above = 0;  ///< rows of the tensor (a vector: elements) that other pieces have before it
};

/// A tensor of a model as others see it, whichever ranks hold its elements: pieces of parameters, stacked by
/// rows, padding left out.
struct WholeTensor {
  std::string name;
  std::vector<StackedPiece> pieces;
  std::int64_t rows = 0, columns = 0;  ///< extents in the model; no columns: a vector
  bool transposed = false;             ///< it is stored as [columns, rows]
  std::vector<std::int64_t> stored{};  ///< shape in a file, if that is neither

  std::int64_t width() const { return columns == 0 ? 1 : columns; }
  std::int64_t count() const { return rows * width(); }
  std::vector<std::int64_t> shape() const;  ///< shape in the file
};
/// Every piece of a model as a tensor by itself, in model order; or of those that are learned, which have
/// moments.
std::vector<WholeTensor> tensors_of_pieces(const Model& model, bool with_moments = false);
/// A model's tensors as files that others read have them, sorted by name.
std::vector<WholeTensor> tensors_for_files(const Model& model);

}  // namespace mindpipe
