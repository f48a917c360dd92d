#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/worker.h"
#include "state/state_reader.h"
#include "state/weights.h"

namespace mindpipe {
namespace {

/// Of elements [first, first + count) of a whole tensor, as it is stored, those that a shard has.
void read_lines(StateReader& reader, int unit, const StoredLines& has, std::int64_t first, std::int64_t count,
                std::byte* words) {
  for (std::int64_t l = std::max<std::int64_t>(0, (first - has.first) / has.line); l < has.lines; ++l) {
    const std::int64_t line = has.first + l * has.line;
    const std::int64_t begin = std::max(first, line), end = std::min(first + count, line + has.length);
    if (line >= first + count) break;
    if (begin < end)
      reader.read(unit, has.flat + l * has.flat_line + (begin - line) * has.flat_step, has.flat_step,
                  end - begin, words + (begin - first) * 4);
  }
}

std::vector<std::int64_t> integers_of(const Sha256::Digest& digest) { return {digest.begin(), digest.end()}; }

/// Fails where the ranks of a group come with different digests.
void require_alike(Communicator& group, const std::vector<std::int64_t>& digest) {
  std::vector<std::int64_t> sums = digest;
  group.sum_integers(sums, TrafficClass::files);
  for (std::size_t i = 0; i < sums.size(); ++i)
    MP_CHECK(sums[i] == digest[i] * group.size(),
             "the ranks of the {} axis hold different copies of the same weights", name_of(group.axis()));
}

}  // namespace

/// Whether this rank's elements of it are to be taken: one stage of those that have the unit, one rank of
/// those that have all of it.
bool Worker::speaks_for(const WholeTensor::Source& source) {
  if (updates_->optimizer_of(source.unit) == nullptr || !stage_->counts_here(source.unit)) return false;
  return stage_->unit(source.unit).params()[source.param].split != Split::none || tensor_->rank() == 0;
}

/// Every rank puts in the words that it speaks for and zeros elsewhere; their sum, two words at a time, is
/// exact whatever they mean.
void Worker::pass_words(std::string_view slot, const std::vector<WholeTensor>& tensors,
                        const TakeWords& take) {
  std::vector<Communicator*> groups{tensor_.get(), pipeline_.get()};
  // Values are whole on every data rank; state may be in parts, each on one rank.
  if (slot != "value" && updates_->sharded()) groups.push_back(data_.get());
  int ranks = 1;
  for (Communicator* group : groups) ranks = std::max(ranks, group->size());

  StagingBuffer passage(*backend_, executor_->actions().scratch(), plan_.passing);
  auto* words = passage.host<std::byte>();
  // What arrives in a sum takes as much room as what is summed, and an alignment for each rank.
  const std::size_t room =
      ranks == 1 ? passage.bytes() : (passage.bytes() - static_cast<std::size_t>(ranks) * alignment) / 2;
  const auto most = static_cast<std::int64_t>(room / 8 * 2);
  std::byte* arriving = words + aligned(static_cast<std::size_t>(most) * 4);
  StateReader reader(*stage_, *updates_, slot);
  std::int64_t filled = 0;
  const auto pass_on = [&] {
    std::memset(words + filled * 4, 0, filled % 2 * 4);
    const std::span pairs(reinterpret_cast<std::int64_t*>(words), static_cast<std::size_t>((filled + 1) / 2));
    for (Communicator* group : groups) group->sum_integers(pairs, TrafficClass::files, arriving);
    take(words, static_cast<std::size_t>(filled) * 4);
    filled = 0;
  };
  for (const WholeTensor& tensor : tensors)
    for (std::int64_t first = 0; first < tensor.count();) {
      const std::int64_t count = std::min(most - filled, tensor.count() - first);
      std::memset(words + filled * 4, 0, static_cast<std::size_t>(count) * 4);
      for (const WholeTensor::Source& source : tensor.sources) {
        if (!speaks_for(source)) continue;
        const Unit& unit = stage_->unit(source.unit);
        for (int s = 0; s < unit.local_shards(source.param); ++s)
          read_lines(reader, source.unit, stored_lines(tensor, source, unit, s), first, count,
                     words + filled * 4);
      }
      first += count, filled += count;
      if (filled == most) pass_on();
    }
  if (filled > 0) pass_on();
}

void Worker::gather_weights(const TakeWords& take) {
  pass_words(compute_dtype(config_) == DType::f32 ? "value" : "master", tensors_for_files(stage_->model()),
             take);
}

void Worker::load_weights(const ReadElements& read) {
  StagingBuffer passage(*backend_, executor_->actions().scratch(), plan_.passing);
  const std::vector<WholeTensor> tensors = tensors_for_files(stage_->model());
  std::map<std::array<int, 3>, std::pair<const WholeTensor*, std::int64_t>>
      place;  // of each piece: its tensor, and the rows above it there
  for (const WholeTensor& tensor : tensors)
    for (const WholeTensor::Source& source : tensor.sources)
      place[{source.unit, source.param, source.part}] = {&tensor, source.above};
  for (int u : stage_->local_units()) {
    Unit& unit = stage_->unit(u);
    set_values_in_pieces(
        *backend_, unit, updates_->optimizer_of(u), passage,
        [&](std::int64_t first, std::int64_t count, float* flat) {
          std::fill_n(flat, count, 0.0f);
          for (const Stretch& stretch : stretches(unit, first, count)) {
            const auto& [tensor, above] = place.at({u, stretch.param, stretch.part});
            for (std::int64_t r = stretch.first_row(); r < stretch.end_row(); ++r) {
              const Stretch::Row row = stretch.row(r);
              const std::int64_t at = tensor->transposed ? row.column * tensor->rows + above + row.row
                                                         : (above + row.row) * tensor->width() + row.column;
              read(*tensor, at, tensor->transposed ? tensor->rows : 1, row.count, flat + row.before);
            }
          }
        });
  }
}

/// Of all state in the parameters that no rank of the tensor group has alone: one speaks for all, so the
/// others' are in no other digest.
Sha256::Digest Worker::digest_of_copies() {
  StagingBuffer passage(*backend_, executor_->actions().scratch(), plan_.passing);
  auto* words = passage.host<std::byte>();
  Sha256 sha;
  for (const std::string_view slot : state_slots(config_)) {
    StateReader reader(*stage_, *updates_, slot);
    for (int u : stage_->local_units()) {
      const Unit& unit = stage_->unit(u);
      for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
        const std::int64_t all = unit.params()[p].split == Split::none ? unit.shard_shape(p).count() : 0;
        for (std::int64_t first = 0; first < all; first += passage.most_floats()) {
          const std::int64_t count = std::min(passage.most_floats(), all - first);
          std::memset(words, 0, static_cast<std::size_t>(count) * 4);
          reader.read(u, unit.flat_offset(p, 0) + first, 1, count, words);
          sha.add(words, static_cast<std::size_t>(count) * 4);
        }
      }
    }
  }
  return sha.end();
}

Sha256::Digest Worker::state_digest() {
  const std::vector<WholeTensor> tensors = pieces_of(stage_->model());
  const bool digests = tensor_->rank() == 0 && pipeline_->rank() == 0;
  Sha256 sha;
  for (const std::string_view slot : state_slots(config_))
    pass_words(slot, tensors, [&](const std::byte* words, std::size_t bytes) {
      if (digests) sha.add(words, bytes);
    });
  std::vector<std::int64_t> digest = integers_of(digests ? sha.end() : Sha256::Digest{});
  tensor_->sum_integers(digest, TrafficClass::files);
  pipeline_->sum_integers(digest, TrafficClass::files);
  require_alike(*tensor_, integers_of(digest_of_copies()));
  require_alike(*data_, digest);
  Sha256::Digest all;
  std::copy(digest.begin(), digest.end(), all.begin());
  return all;
}

}  // namespace mindpipe
