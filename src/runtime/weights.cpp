#include "runtime/weights.h"

#include <algorithm>
#include <cstring>

#include "core/random.h"

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

void set_values(Backend& backend, Unit& unit, UnitOptimizer* optimizer, const Tensor& flat) {
  Arena room;
  Tensor here = flat;
  if (!backend.host_may_read()) {
    room = Arena(backend.memory(), MemoryClass::workspace, flat.bytes());
    here = room.take(flat.shape, flat.dtype);
    backend.upload(flat.data, here);
  }
  if (unit.dtype() == DType::f32) backend.copy(here, unit.flat_values());
  else backend.convert(here, unit.flat_values());
  if (optimizer != nullptr && unit.dtype() != DType::f64) optimizer->set_masters(backend, here);
  backend.synchronize();
}

void initial_values(const Unit& unit, std::uint64_t seed, int threads, float* flat) {
  std::fill_n(flat, unit.flat_count(), 0.0f);
  for (int param = 0; param < static_cast<int>(unit.params().size()); ++param) {
    const ParamSpec& spec = unit.params()[param];
    for (int s = 0; s < unit.local_shards(param); ++s)
      for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
        const int logical = spec.split == Split::none ? 0 : unit.shards().first + s;
        const PieceOfShard piece = piece_of(unit, param, part, logical);
        float* to = flat + unit.flat_offset(param, s) + piece.first;
        if (spec.initial.kind == Initial::Kind::one) std::fill_n(to, piece.real_rows * piece.columns, 1.0f);
        if (spec.initial.kind != Initial::Kind::normal) continue;
        const RandomStream stream{seed, purpose_of(unit.name() + "." + spec.parts[part].name)};
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::int64_t r = 0; r < piece.real_rows; ++r)
          stream.normals((piece.whole_row + r) * piece.whole_columns + piece.whole_column, piece.columns,
                         static_cast<float>(spec.initial.deviation), to + r * piece.columns);
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
