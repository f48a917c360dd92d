#include "state/whole_tensor.h"

#include <algorithm>
#include <map>

namespace mindpipe {
namespace {

/// "transformer.h.0.attn.c_attn.weight#1": piece 1 of the tensor before the mark.
std::string without_mark(const std::string& name) { return name.substr(0, name.find('#')); }

/// Calls use(unit, param, part) for every piece, in model order.
template <class Use>
void each_piece(const Model& model, Use use) {
  for (int u = 0; u < static_cast<int>(model.units().size()); ++u)
    for (int p = 0; p < static_cast<int>(model.units()[u]->params().size()); ++p)
      for (int part = 0; part < static_cast<int>(model.units()[u]->params()[p].parts.size()); ++part)
        use(u, p, part);
}

void stack(WholeTensor& tensor, const Model& model, int unit, int param, int part) {
  const ParamSpec& spec = model.units()[unit]->params()[param];
  tensor.sources.push_back({unit, param, part, tensor.rows});
  tensor.rows += spec.parts[part].rows - spec.parts[part].padding;
  tensor.columns = spec.columns;
}

}  // namespace

PieceOfShard piece_of(const Unit& unit, int param, int part, int logical_shard) {
  const ParamSpec& spec = unit.params()[param];
  const std::int64_t shards = unit.shards().logical;
  PieceOfShard piece;
  piece.whole_columns = spec.width();
  piece.columns = spec.split == Split::in ? spec.columns / shards : spec.width();
  piece.whole_column = spec.split == Split::in ? logical_shard * piece.columns : 0;
  for (int i = 0; i <= part; ++i) {
    const Piece& p = spec.parts[i];
    piece.rows = spec.split == Split::out ? p.rows / shards : p.rows;
    if (i < part) piece.first += piece.rows * piece.columns;
  }
  const Piece& p = spec.parts[part];
  piece.whole_row = spec.split == Split::out ? logical_shard * piece.rows : 0;
  piece.real_rows = std::clamp<std::int64_t>(p.rows - p.padding - piece.whole_row, 0, piece.rows);
  return piece;
}

int logical_shard(const Unit& unit, int param, int local_shard) {
  return unit.params()[param].split == Split::none ? 0 : unit.shards().first + local_shard;
}

std::vector<std::int64_t> WholeTensor::shape() const {
  if (columns == 0) return {rows};
  return transposed ? std::vector<std::int64_t>{columns, rows} : std::vector<std::int64_t>{rows, columns};
}

std::vector<WholeTensor> pieces_of(const Model& model) {
  std::vector<WholeTensor> all;
  each_piece(model, [&](int unit, int param, int part) {
    const Unit& of = *model.units()[unit];
    stack(all.emplace_back(), model, unit, param, part);
    all.back().name = of.name() + "." + of.params()[param].parts[part].name;
  });
  return all;
}

std::vector<WholeTensor> tensors_for_files(const Model& model) {
  std::map<std::string, WholeTensor> by_name;
  each_piece(model, [&](int unit, int param, int part) {
    const Unit& of = *model.units()[unit];
    const Model::ExportName as = model.export_name(of.name(), of.params()[param].parts[part].name);
    WholeTensor& tensor = by_name[without_mark(as.name)];
    tensor.name = without_mark(as.name);
    stack(tensor, model, unit, param, part);
    tensor.transposed = as.transposed && tensor.columns > 0;
  });
  std::vector<WholeTensor> all;
  for (auto& [name, tensor] : by_name) all.push_back(std::move(tensor));
  return all;
}

StoredLines stored_lines(const WholeTensor& tensor, const WholeTensor::Source& source, const Unit& unit,
                         int local_shard) {
  const PieceOfShard piece =
      piece_of(unit, source.param, source.part, logical_shard(unit, source.param, local_shard));
  const std::int64_t flat = unit.flat_offset(source.param, local_shard) + piece.first,
                     row = source.above + piece.whole_row;
  if (tensor.transposed)
    return {piece.columns, piece.real_rows, piece.whole_column * tensor.rows + row, tensor.rows, flat, 1,
            piece.columns};
  return {piece.real_rows,
          piece.columns,
          row * tensor.width() + piece.whole_column,
          tensor.width(),
          flat,
          piece.columns,
          1};
}

}  // namespace mindpipe
