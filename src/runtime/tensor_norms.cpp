#include "runtime/tensor_norms.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "operations/updates.h"

namespace mindpipe {
namespace {

/// The square of a shard's values: its chunks one after the other, as gradients are added up.
double square_of(Worker& worker, const Tensor& values) {
  Arena& scratch = worker.executor().actions().scratch();
  const std::size_t mark = scratch.mark();
  const std::int64_t chunks = statistics_chunks(values.count());
  const Tensor sums = scratch.take({chunks}, DType::f64);
  std::vector<double> of_chunks(static_cast<std::size_t>(chunks));
  worker.backend().sum_squares({values, sums});
  worker.backend().download(sums, of_chunks.data());
  scratch.release(mark);
  double total = 0;
  for (const double of_chunk : of_chunks) total += of_chunk;
  return total;
}

/// Puts numbers that one stage has, and zeros come from the others, in place on all of them.
void share_over(Communicator& stages, std::vector<double>& numbers) {
  std::vector<std::int64_t> words;
  for (const double number : numbers) words.push_back(std::bit_cast<std::int64_t>(number));
  stages.sum_integers(words);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::bit_cast<double>(words[i]);
}

/// "layers.3.mlp" is a part of "layers.3"; what has no number is a layer by itself.
std::string layer_of(const std::string& unit) {
  const std::size_t dot = unit.find('.');
  if (dot == std::string::npos) return unit;
  const std::size_t end = unit.find('.', dot + 1);
  const std::string number = unit.substr(dot + 1, end == std::string::npos ? end : end - dot - 1);
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  return unit.substr(0, is_number ? end : dot);
}

}  // namespace

TensorSquares squares_of_tensors(Worker& worker) {
  worker.settle();
  Stage& stage = worker.stage();
  Communicator& tensor = worker.group(Axis::tensor);
  const auto& units = stage.model().units();
  std::size_t tensors = 0;
  for (const auto& unit : units) tensors += unit->params().size();
  TensorSquares squares;
  squares.gradients.resize(tensors);
  const Tensor measured = worker.updates().decisions().squares_of_step();
  worker.backend().download(measured, squares.gradients.data());
  const auto shards = static_cast<std::size_t>(tensor.local_shards());
  std::vector<double> of_shards(shards * tensors, 0);
  std::size_t first = 0;
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    const bool counts = worker.residency().shares().has(u) && stage.counts_here(u);
    const int params = static_cast<int>(units[u]->params().size());
    if (counts) worker.residency().whole().require(u);
    for (int p = 0; p < params && counts; ++p) {
      if (units[u]->params()[p].split == Split::none && tensor.rank() != 0) continue;
      for (int shard = 0; shard < stage.unit(u).local_shards(p); ++shard)
        of_shards[static_cast<std::size_t>(shard) * tensors + first + static_cast<std::size_t>(p)] =
            square_of(worker, stage.unit(u).value(p, shard));
    }
    first += static_cast<std::size_t>(params);
  }
  tensor.sum_over_shards(std::span(of_shards));
  squares.weights.assign(of_shards.begin(), of_shards.begin() + static_cast<std::ptrdiff_t>(tensors));
  share_over(worker.group(Axis::pipeline), squares.weights);
  return squares;
}

std::vector<LayerNorms> norms_by_layer(const Model& model, const TensorSquares& squares,
                                       double gradient_norm) {
  double all = 0;
  for (const double square : squares.gradients) all += square;
  // Where the norm of all is no number, its layers' are as they were added up: one of them has the name.
  const double known = gradient_norm / std::sqrt(all), scale = all == 0               ? 0
                                                               : std::isfinite(known) ? known
                                                                                      : 1;
  std::vector<LayerNorms> layers;
  std::size_t tensor = 0;
  for (const auto& unit : model.units()) {
    const std::string name = layer_of(unit->name());
    auto layer =
        std::find_if(layers.begin(), layers.end(), [&](const LayerNorms& l) { return l.layer == name; });
    if (layer == layers.end()) layer = layers.insert(layers.end(), {name});
    for (std::size_t p = 0; p < unit->params().size(); ++p, ++tensor) {
      layer->gradient += squares.gradients[tensor];
      layer->weights += squares.weights[tensor];
    }
  }
  for (LayerNorms& layer : layers)
    layer = {layer.layer, scale * std::sqrt(layer.gradient), std::sqrt(layer.weights)};
  return layers;
}

}  // namespace mindpipe
