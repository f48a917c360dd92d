#include "state/weights.h"

#include <algorithm>

#include "core/random.h"
#include "cpu/normals.h"

namespace mindpipe {

Stretch::Row Stretch::row(std::int64_t r) const {
  const std::int64_t begin = std::max(first, r * piece.columns),
                     end = std::min(first + count, (r + 1) * piece.columns);
  return {piece.whole_row + r, piece.whole_column + begin - r * piece.columns, end - begin,
          before + begin - first};
}

std::vector<Stretch> stretches(const Unit& unit, std::int64_t first, std::int64_t count) {
  std::vector<Stretch> all;
  for (int param = 0; param < static_cast<int>(unit.params().size()); ++param)
    for (int s = 0; s < unit.local_shards(param); ++s)
      for (int part = 0; part < static_cast<int>(unit.params()[param].parts.size()); ++part) {
        const PieceOfShard piece = piece_of(unit, param, part, logical_shard(unit, param, s));
        const std::int64_t flat = unit.flat_offset(param, s) + piece.first;
        const std::int64_t begin = std::max(first, flat),
                           end = std::min(first + count, flat + piece.real_rows * piece.columns);
        if (begin < end) all.push_back({param, part, piece, begin - flat, end - begin, begin - first});
      }
  return all;
}

void initial_values(const Unit& unit, std::uint64_t seed, int threads, std::int64_t first, std::int64_t count,
                    float* flat) {
  std::fill_n(flat, count, 0.0f);
  for (const Stretch& stretch : stretches(unit, first, count)) {
    const ParamSpec& spec = unit.params()[stretch.param];
    if (spec.initial.kind == Initial::Kind::one) std::fill_n(flat + stretch.before, stretch.count, 1.0f);
    if (spec.initial.kind != Initial::Kind::normal) continue;
    const RandomStream stream{seed, purpose_of(unit.name() + "." + spec.parts[stretch.part].name)};
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t r = stretch.first_row(); r < stretch.end_row(); ++r) {
      const Stretch::Row row = stretch.row(r);
      draw_normals(stream, row.row * stretch.piece.whole_columns + row.column, row.count,
                   static_cast<float>(spec.initial.deviation), flat + row.before);
    }
  }
}

void set_values_in_pieces(Backend& backend, Unit& unit, UnitOptimizer* optimizer, StagingBuffer& passage,
                          const GiveValues& give) {
  const std::int64_t all = unit.flat_count(), most = passage.most_floats();
  for (std::int64_t first = 0; first < all; first += most) {
    const std::int64_t count = std::min(most, all - first);
    give(first, count, passage.host<float>());
    const Tensor given = passage.floats(count), values = unit.flat_values().range(first, count);
    if (unit.dtype() == DType::f32) backend.copy(given, values);
    else backend.convert(given, values);
    if (optimizer != nullptr) optimizer->set_masters(backend, first, given);
  }
  if (optimizer != nullptr) optimizer->clear_moments(backend);
  backend.synchronize();
}

std::vector<std::string_view> state_slots(const Config& config) {
  std::vector<std::string_view> slots{"value"};
  if (config.train.precision == Precision::bf16) slots.push_back("master");
  const auto moments = config.optimizer.moments();
  slots.insert(slots.end(), moments.begin(), moments.end());
  return slots;
}

}  // namespace mindpipe
