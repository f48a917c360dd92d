#include "app/weights_file.h"

#include <algorithm>
#include <map>

#include "io/safetensors.h"

namespace mindpipe {
namespace {

/// "transformer.h.0.attn.c_attn.weight#1": piece 1 of the tensor before the mark.
std::pair<std::string, int> base_and_piece(const std::string& name) {
  const std::size_t mark = name.find('#');
  if (mark == std::string::npos) return {name, -1};
  return {name.substr(0, mark), std::stoi(name.substr(mark + 1))};
}

std::vector<float> transpose(const std::vector<float>& x, std::int64_t rows, std::int64_t columns) {
  std::vector<float> y(x.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  return y;
}

struct Stacked {
  std::vector<std::int64_t> shape;  ///< [out, in] or [out]
  std::vector<float> values;
  bool transposed = false;
};

}  // namespace

void save_weights(Worker& worker, const std::string& path) {
  std::map<std::string, Stacked> tensors;
  worker.gather_weights([&](const Model::ExportName& name, const std::vector<std::int64_t>& shape, std::vector<float>& whole) {
    Stacked& stacked = tensors[base_and_piece(name.name).first];
    stacked.transposed = name.transposed;
    if (stacked.shape.empty()) stacked.shape = shape;
    else stacked.shape[0] += shape[0];
    stacked.values.insert(stacked.values.end(), whole.begin(), whole.end());
  });
  if (worker.world().rank != 0) return;
  std::vector<TensorToStore> stored;
  for (auto& [name, t] : tensors) {
    if (t.transposed && t.shape.size() == 2) {
      t.values = transpose(t.values, t.shape[0], t.shape[1]);
      std::swap(t.shape[0], t.shape[1]);
    }
    stored.push_back({name, StoredType::f32, t.shape, t.values.data()});
  }
  write_safetensors(path, {{"format", "pt"}}, stored);
}

void read_weights(Worker& worker, const std::string& path) {
  const SafetensorsFile file(path);
  worker.load_weights([&](const Model::ExportName& name, const std::vector<std::int64_t>& shape) {
    const auto [base, piece] = base_and_piece(name.name);
    const StoredTensor& stored = file.tensor(base);
    std::vector<float> values = file.floats(base);
    std::vector<std::int64_t> found = stored.shape;
    if (name.transposed && found.size() == 2) {
      values = transpose(values, found[0], found[1]);
      std::swap(found[0], found[1]);
    }
    std::vector<std::int64_t> wanted = shape;
    if (piece >= 0) wanted[0] *= 3;
    MP_REQUIRE(
        found == wanted, Exit::bad_data,
        "{}: tensor {} has {} elements in another shape than the model of this configuration ({} elements); is it the model's own file?",
        path, base, stored.count(), wanted.size() == 2 ? wanted[0] * wanted[1] : wanted[0]);
    if (piece < 0) return values;
    const std::int64_t count = shape[0] * (shape.size() == 2 ? shape[1] : 1);
    return std::vector<float>(values.begin() + piece * count, values.begin() + (piece + 1) * count);
  });
}

}  // namespace mindpipe
