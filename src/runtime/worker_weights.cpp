#include <algorithm>
#include <cstring>

#include "core/random.h"
#include "runtime/weights.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

/// Adds words that at most one rank has (the others have zeros): exact, whatever they mean.
void sum_words(Communicator& group, std::vector<std::uint32_t>& words) {
  if (group.size() == 1) return;
  constexpr std::size_t at_once = 1 << 20;
  std::vector<std::int64_t> wide;
  for (std::size_t first = 0; first < words.size(); first += at_once) {
    const std::size_t count = std::min(at_once, words.size() - first);
    wide.assign(words.begin() + first, words.begin() + first + count);
    group.sum_integers(wide, TrafficClass::files);
    for (std::size_t i = 0; i < count; ++i) words[first + i] = static_cast<std::uint32_t>(wide[i]);
  }
}

float widened(std::uint16_t bf16) {
  const std::uint32_t word = static_cast<std::uint32_t>(bf16) << 16;
  float x;
  std::memcpy(&x, &word, 4);
  return x;
}

}  // namespace

/// A local unit's weights as f32 in flat order: masters where values are rounded, exchanged where they are spread over data ranks.
std::vector<float> Worker::flat_weights(int index) {
  Unit& unit = stage_->unit(index);
  UnitOptimizer& optimizer = *replicas_->optimizer_of(index);
  std::vector<std::uint32_t> words(unit.flat_count(), 0);
  Tensor master;
  for (const auto& [name, slot] : optimizer.slots())
    if (name == "master") master = slot;
  if (unit.dtype() == DType::f32) {
    backend_->download(unit.flat_values(), words.data());
  } else {
    // An empty part has no master of its own, and its neighbours have all of it.
    if (master) backend_->download(master, words.data() + optimizer.begin());
    if (replicas_->sharded()) sum_words(*data_, words);
  }
  std::vector<float> flat(words.size());
  std::memcpy(flat.data(), words.data(), words.size() * 4);
  return flat;
}

void Worker::gather_weights(const TakeWeights& take) {
  const auto& units = stage_->model().units();
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    const Unit& unit = *units[u];
    const bool local = replicas_->optimizer_of(u) != nullptr, here = local && stage_->counts_here(u);
    const std::vector<float> flat = local ? flat_weights(u) : std::vector<float>{};
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      const ParamSpec& spec = unit.params()[p];
      for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
        const std::int64_t rows = spec.parts[part].rows - spec.parts[part].padding, columns = spec.width();
        std::vector<std::uint32_t> words(rows * columns, 0);
        for (int s = 0; here && s < unit.local_shards(p); ++s) {
          if (spec.split == Split::none && tensor_->rank() != 0) continue;
          const PieceOfShard piece = piece_of(unit, p, part, spec.split == Split::none ? 0 : unit.shards().first + s);
          for (std::int64_t r = 0; r < piece.real_rows; ++r)
            std::memcpy(&words[(piece.whole_row + r) * columns + piece.whole_column],
                        &flat[unit.flat_offset(p, s) + piece.first + r * piece.columns], piece.columns * 4);
        }
        sum_words(*tensor_, words);
        sum_words(*pipeline_, words);
        if (world_.rank != 0) continue;
        std::vector<float> whole(words.size());
        std::memcpy(whole.data(), words.data(), words.size() * 4);
        const Model::ExportName name = stage_->model().export_name(unit.name(), spec.parts[part].name);
        take(name, spec.columns == 0 ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, columns}, whole);
      }
    }
  }
}

void Worker::load_weights(const FindWeights& find) {
  for (int u : stage_->local_units()) {
    Unit& unit = stage_->unit(u);
    if (unit.flat_count() == 0) continue;
    Memory host(Memory::Kind::host);
    Arena room(host, MemoryClass::workspace, bytes_for({unit.flat_count()}, DType::f32));
    const Tensor flat = room.take({unit.flat_count()}, DType::f32);
    std::fill_n(flat.as<float>(), unit.flat_count(), 0.0f);
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      const ParamSpec& spec = unit.params()[p];
      for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
        const std::int64_t rows = spec.parts[part].rows - spec.parts[part].padding, columns = spec.width();
        const Model::ExportName name = stage_->model().export_name(unit.name(), spec.parts[part].name);
        const std::vector<float> whole =
            find(name, spec.columns == 0 ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, columns});
        for (int s = 0; s < unit.local_shards(p); ++s) {
          const PieceOfShard piece = piece_of(unit, p, part, spec.split == Split::none ? 0 : unit.shards().first + s);
          for (std::int64_t r = 0; r < piece.real_rows; ++r)
            std::memcpy(flat.as<float>() + unit.flat_offset(p, s) + piece.first + r * piece.columns,
                        &whole[(piece.whole_row + r) * columns + piece.whole_column], piece.columns * 4);
        }
      }
    }
    set_values(*backend_, unit, replicas_->optimizer_of(u), flat);
  }
}

std::uint64_t Worker::state_hash() {
  WeightHash hash, alike;
  const auto& units = stage_->model().units();
  for (int u : stage_->local_units()) {
    if (!stage_->counts_here(u)) continue;
    const Unit& unit = *units[u];
    UnitOptimizer& optimizer = *replicas_->optimizer_of(u);
    // Values are whole on every data rank and count once; state may be in parts, each on one rank.
    std::vector<std::pair<std::string, std::vector<float>>> slots;
    std::vector<std::byte> raw(unit.flat_count() * bytes_of(unit.dtype()));
    backend_->download(unit.flat_values(), raw.data());
    std::vector<float> values(unit.flat_count());
    for (std::int64_t i = 0; i < unit.flat_count(); ++i) {
      if (unit.dtype() == DType::f32) std::memcpy(&values[i], &raw[i * 4], 4);
      else {
        std::uint16_t word;
        std::memcpy(&word, &raw[i * 2], 2);
        values[i] = widened(word);
      }
    }
    slots.emplace_back("value", std::move(values));
    const std::int64_t begin = optimizer.begin(), end = optimizer.end();
    for (const auto& [name, slot] : optimizer.slots()) {
      std::vector<float> flat(unit.flat_count(), 0.0f);
      backend_->download(slot, flat.data() + begin);
      slots.emplace_back(name, std::move(flat));
    }
    for (const auto& [name, flat] : slots)
      for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
        for (int s = 0; s < unit.local_shards(p); ++s) {
          const ParamSpec& spec = unit.params()[p];
          if (spec.split == Split::none && tensor_->rank() != 0) continue;
          for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
            const PieceOfShard piece = piece_of(unit, p, part, spec.split == Split::none ? 0 : unit.shards().first + s);
            const std::uint64_t tensor = purpose_of(unit.name() + "." + spec.parts[part].name + "." + name);
            const bool every_rank = name == "value" || !replicas_->sharded();
            for (std::int64_t r = 0; r < piece.real_rows; ++r) {
              const std::int64_t at = unit.flat_offset(p, s) + piece.first + r * piece.columns;
              const std::int64_t from = every_rank ? at : std::clamp(begin, at, at + piece.columns),
                                 to = every_rank ? at + piece.columns : std::clamp(end, at, at + piece.columns);
              WeightHash one;
              one.add(tensor, (piece.whole_row + r) * piece.whole_columns + piece.whole_column + (from - at), flat.data() + from, to - from,
                      4);
              if (every_rank) alike.sum += one.sum;
              if (!every_rank || data_->rank() == 0) hash.sum += one.sum;
            }
          }
        }
  }
  std::vector<std::int64_t> sums{static_cast<std::int64_t>(alike.sum)};
  data_->sum_integers(sums);
  MP_CHECK(static_cast<std::uint64_t>(sums[0]) == alike.sum * static_cast<std::uint64_t>(data_->size()),
           "the replicas of the data axis hold different weights");
  sums[0] = static_cast<std::int64_t>(hash.sum);
  tensor_->sum_integers(sums);
  data_->sum_integers(sums);
  pipeline_->sum_integers(sums);
  return static_cast<std::uint64_t>(sums[0]);
}

}  // namespace mindpipe
