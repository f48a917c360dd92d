#pragma once
#include <string>
#include <vector>

#include "runtime/worker.h"

namespace mindpipe {

/// Squares of every tensor of a model, in its order: of the newest step's gradient, as it is summed, and of
/// the weights.
struct TensorSquares {
  std::vector<double> gradients, weights;
};
/// Measures them between two steps, with the same bits on every grid. Waits for the device. Collective over
/// the grid.
TensorSquares squares_of_tensors(Worker& worker);

/// Norms of a layer's gradient and weights.
struct LayerNorms {
  std::string layer;  ///< "layers.3", "embedding"
  double gradient = 0, weights = 0;
};
/// The squares summed by layer, in the order of the model. `gradient_norm`: of all tensors together, in whose
/// scale the gradients are told.
std::vector<LayerNorms> norms_by_layer(const Model& model, const TensorSquares& squares,
                                       double gradient_norm);

}  // namespace mindpipe
