#include "state/whole_tensor.h"

#include <map>

namespace mindpipe {
namespace {

/// The tensor's name in that of one of its pieces: "transformer.h.0.attn.c_attn.weight#1" is piece 1 of it.
std::string without_mark(const std::string& name) { return name.substr(0, name.find('#')); }

/// Calls use(unit, param, piece) for every piece, in model order.
template <class Use>
void each_piece(const Model& model, Use use) {
  for (int u = 0; u < static_cast<int>(model.units().size()); ++u)
    for (int p = 0; p < static_cast<int>(model.units()[u]->params().size()); ++p)
      for (int piece = 0; piece < static_cast<int>(model.units()[u]->params()[p].pieces.size()); ++piece)
        use(u, p, piece);
}

void stack(WholeTensor& tensor, const Model& model, int unit, int param, int piece) {
  const ParamSpec& spec = model.units()[unit]->params()[param];
  tensor.pieces.push_back({unit, param, piece, tensor.rows});
  tensor.rows += spec.pieces[piece].rows - spec.pieces[piece].padding;
  tensor.columns = spec.columns;
}

}  // namespace

std::vector<std::int64_t> WholeTensor::shape() const {
  if (!stored.empty()) return stored;
  if (columns == 0) return {rows};
  return transposed ? std::vector<std::int64_t>{columns, rows} : std::vector<std::int64_t>{rows, columns};
}

std::vector<WholeTensor> tensors_of_pieces(const Model& model, bool with_moments) {
  std::vector<WholeTensor> all;
  each_piece(model, [&](int unit, int param, int piece) {
    const Unit& of = *model.units()[unit];
    if (with_moments && !of.params()[param].is_learned()) return;
    stack(all.emplace_back(), model, unit, param, piece);
    all.back().name = of.name() + "." + of.params()[param].pieces[piece].name;
  });
  return all;
}

std::vector<WholeTensor> tensors_for_files(const Model& model) {
  std::map<std::string, WholeTensor> by_name;
  each_piece(model, [&](int unit, int param, int piece) {
    const Unit& of = *model.units()[unit];
    const Model::ExportName as = model.export_name(of.name(), of.params()[param].pieces[piece].name);
    WholeTensor& tensor = by_name[without_mark(as.name)];
    tensor.name = without_mark(as.name);
    stack(tensor, model, unit, param, piece);
    tensor.transposed = as.transposed && tensor.columns > 0;
    tensor.stored = as.shape;
  });
  std::vector<WholeTensor> all;
  for (auto& [name, tensor] : by_name) all.push_back(std::move(tensor));
  return all;
}

}  // namespace mindpipe
