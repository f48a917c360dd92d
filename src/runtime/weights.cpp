#include "runtime/weights.h"

#include <algorithm>
#include <cstring>

#include "core/random.h"
#include "cpu/normals.h"

namespace mindpipe {

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

void set_values(Backend& backend, Unit& unit, UnitOptimizer* optimizer, std::int64_t first, const Tensor& flat) {
  Arena room;
  Tensor here = flat;
  if (!backend.host_may_read()) {
    room = Arena(backend.memory(), MemoryClass::workspace, flat.bytes());
    here = room.take(flat.shape, flat.dtype);
    backend.upload(flat.data, here);
  }
  const Tensor values = unit.flat_values().range(first, flat.count());
  if (unit.dtype() == DType::f32) backend.copy(here, values);
  else backend.convert(here, values);
  if (optimizer != nullptr && unit.dtype() != DType::f64) optimizer->set_masters(backend, first, here);
  backend.synchronize();
}

namespace {

/// The rows of one piece that lie, in part at least, in elements [first, first + count) of the flat order, where the piece is from `begin`.
void initial_rows(const RandomStream& stream, const PieceOfShard& piece, float deviation, int threads, std::int64_t begin,
                  std::int64_t first, std::int64_t count, float* flat) {
  const std::int64_t last = std::min(piece.real_rows, (first + count - begin + piece.columns - 1) / piece.columns);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t r = std::max<std::int64_t>(0, (first - begin) / piece.columns); r < last; ++r) {
    const std::int64_t row = begin + r * piece.columns, from = std::max(row, first), to = std::min(row + piece.columns, first + count);
    const std::int64_t element = (piece.whole_row + r) * piece.whole_columns + piece.whole_column + (from - row);
    if (from < to) draw_normals(stream, element, to - from, deviation, flat + (from - first));
  }
}

}  // namespace

void initial_values(const Unit& unit, std::uint64_t seed, int threads, std::int64_t first, std::int64_t count, float* flat) {
  std::fill_n(flat, count, 0.0f);
  for (int param = 0; param < static_cast<int>(unit.params().size()); ++param) {
    const ParamSpec& spec = unit.params()[param];
    for (int s = 0; s < unit.local_shards(param); ++s)
      for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
        const PieceOfShard piece = piece_of(unit, param, part, spec.split == Split::none ? 0 : unit.shards().first + s);
        const std::int64_t begin = unit.flat_offset(param, s) + piece.first, end = begin + piece.real_rows * piece.columns;
        const std::int64_t from = std::max(begin, first), to = std::min(end, first + count);
        if (from >= to) continue;
        if (spec.initial.kind == Initial::Kind::one) std::fill_n(flat + (from - first), to - from, 1.0f);
        if (spec.initial.kind != Initial::Kind::normal) continue;
        const RandomStream stream{seed, purpose_of(unit.name() + "." + spec.parts[part].name)};
        initial_rows(stream, piece, static_cast<float>(spec.initial.deviation), threads, begin, first, count, flat);
      }
  }
}

std::vector<std::string_view> state_slots(const Config& config) {
  std::vector<std::string_view> slots{"value"};
  if (config.train.precision == "bf16") slots.push_back("master");
  if (config.optimizer.kind == "adamw") slots.insert(slots.end(), {"m", "v"});
  else if (config.optimizer.momentum > 0) slots.push_back("velocity");
  return slots;
}

}  // namespace mindpipe
