#include <algorithm>
#include <cstring>

#include "runtime/weights.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

constexpr std::size_t words_at_once = std::size_t{1} << 20;

/// Adds words that at most one rank has (the others have zeros), two of them at a time: exact, whatever they mean.
void sum_words(Communicator& group, std::vector<std::uint32_t>& words) {
  if (group.size() == 1) return;
  std::vector<std::int64_t> pairs;
  for (std::size_t first = 0; first < words.size(); first += words_at_once) {
    const std::size_t count = std::min(words_at_once, words.size() - first);
    pairs.assign((count + 1) / 2, 0);
    std::memcpy(pairs.data(), words.data() + first, count * 4);
    group.sum_integers(pairs, TrafficClass::files);
    std::memcpy(words.data() + first, pairs.data(), count * 4);
  }
}

std::vector<std::uint32_t> words_of(const Sha256::Digest& digest) {
  std::vector<std::uint32_t> words(digest.size() / 4);
  std::memcpy(words.data(), digest.data(), digest.size());
  return words;
}

/// Fails where the ranks of a group come with different digests.
void require_alike(Communicator& group, const std::vector<std::uint32_t>& digest) {
  std::vector<std::int64_t> sums(digest.begin(), digest.end());
  group.sum_integers(sums, TrafficClass::files);
  for (std::size_t i = 0; i < sums.size(); ++i)
    MP_CHECK(sums[i] == std::int64_t{digest[i]} * group.size(), "the ranks of the {} axis hold different copies of the same weights",
             name_of(group.axis()));
}

}  // namespace

/// What this rank has of a slot of one of its units, as words of f32 in flat order; zeros where other data ranks have it.
std::vector<std::uint32_t> Worker::flat_slot(int index, std::string_view slot) {
  const Unit& unit = stage_->unit(index);
  const UnitOptimizer& optimizer = *replicas_->optimizer_of(index);
  std::vector<std::uint32_t> words(unit.flat_count(), 0);
  if (slot != "value") {
    // An empty part has no state of its own, and its neighbours have all of it.
    for (const auto& [name, tensor] : optimizer.slots())
      if (name == slot) backend_->download(tensor, words.data() + optimizer.begin());
  } else if (unit.dtype() == DType::f32) {
    backend_->download(unit.flat_values(), words.data());
  } else {
    std::vector<std::uint16_t> halves(words.size());
    backend_->download(unit.flat_values(), halves.data());
    std::transform(halves.begin(), halves.end(), words.begin(), [](std::uint16_t half) { return std::uint32_t{half} << 16; });
  }
  return words;
}

/// Appends a whole tensor to `words`: of the unit's `flat` words those that this rank speaks for, zeros elsewhere.
void Worker::append_whole(const Unit& unit, int param, int part, const std::vector<std::uint32_t>& flat,
                          std::vector<std::uint32_t>& words) const {
  const ParamSpec& spec = unit.params()[param];
  const std::size_t begin = words.size();
  words.resize(begin + (spec.parts[part].rows - spec.parts[part].padding) * spec.width(), 0);
  if (flat.empty() || (spec.split == Split::none && tensor_->rank() != 0)) return;
  for (int s = 0; s < unit.local_shards(param); ++s) {
    const PieceOfShard piece = piece_of(unit, param, part, spec.split == Split::none ? 0 : unit.shards().first + s);
    for (std::int64_t r = 0; r < piece.real_rows; ++r)
      std::memcpy(&words[begin + (piece.whole_row + r) * piece.whole_columns + piece.whole_column],
                  &flat[unit.flat_offset(param, s) + piece.first + r * piece.columns], piece.columns * 4);
  }
}

/// Masters where values are rounded.
void Worker::gather_weights(const TakeWeights& take) {
  const auto& units = stage_->model().units();
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    const Unit& unit = *units[u];
    std::vector<std::uint32_t> flat;
    if (replicas_->optimizer_of(u) != nullptr) {
      flat = flat_slot(u, unit.dtype() == DType::f32 ? "value" : "master");
      if (unit.dtype() != DType::f32 && replicas_->sharded()) sum_words(*data_, flat);
      if (!stage_->counts_here(u)) flat.clear();
    }
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      const ParamSpec& spec = unit.params()[p];
      for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
        std::vector<std::uint32_t> words;
        append_whole(unit, p, part, flat, words);
        sum_words(*tensor_, words);
        sum_words(*pipeline_, words);
        if (world_.rank != 0) continue;
        std::vector<float> whole(words.size());
        std::memcpy(whole.data(), words.data(), words.size() * 4);
        const Model::ExportName name = stage_->model().export_name(unit.name(), spec.parts[part].name);
        const std::int64_t rows = spec.parts[part].rows - spec.parts[part].padding;
        take(name, spec.columns == 0 ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, spec.width()}, whole);
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
    set_values(*backend_, unit, replicas_->optimizer_of(u), 0, flat);
    if (UnitOptimizer* optimizer = replicas_->optimizer_of(u)) optimizer->clear_moments(*backend_);
  }
}

Sha256::Digest Worker::state_digest() {
  const auto& units = stage_->model().units();
  const bool digests = tensor_->rank() == 0 && pipeline_->rank() == 0;
  Sha256 sha, copies;  // copies: of what every tensor rank holds, of which one speaks for all
  std::vector<std::uint32_t> words;
  for (const std::string_view slot : state_slots(config_)) {
    // Values are whole on every data rank, each of which digests its own; state may be in parts, each on one rank.
    const bool in_parts = slot != "value" && replicas_->sharded();
    const auto pass_on = [&] {
      sum_words(*tensor_, words);
      sum_words(*pipeline_, words);
      if (in_parts) sum_words(*data_, words);
      if (digests) sha.add(words.data(), words.size() * 4);
      words.clear();
    };
    for (int u = 0; u < static_cast<int>(units.size()); ++u) {
      const bool here = replicas_->optimizer_of(u) != nullptr && stage_->counts_here(u);
      const std::vector<std::uint32_t> flat = here ? flat_slot(u, slot) : std::vector<std::uint32_t>{};
      for (int p = 0; p < static_cast<int>(units[u]->params().size()); ++p) {
        const ParamSpec& spec = units[u]->params()[p];
        if (here && spec.split == Split::none) copies.add(&flat[units[u]->flat_offset(p, 0)], units[u]->shard_shape(p).count() * 4);
        for (int part = 0; part < static_cast<int>(spec.parts.size()); ++part) {
          append_whole(*units[u], p, part, flat, words);
          if (words.size() >= words_at_once) pass_on();
        }
      }
    }
    pass_on();
  }
  std::vector<std::uint32_t> digest = words_of(digests ? sha.end() : Sha256::Digest{});
  sum_words(*tensor_, digest);
  sum_words(*pipeline_, digest);
  require_alike(*tensor_, words_of(copies.end()));
  require_alike(*data_, digest);
  Sha256::Digest all;
  std::memcpy(all.data(), digest.data(), all.size());
  return all;
}

}  // namespace mindpipe
