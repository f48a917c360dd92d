#include "state/state_copy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "config/sections/train.h"

namespace mindpipe {
namespace {

constexpr auto word = static_cast<std::int64_t>(sizeof(float));

/// At a drain every lane has all units of a stage; each writes its share of them.
int writing_lane(const Layout& layout, int unit) { return unit % layout.grid.supernet; }

std::vector<std::vector<FilePiece>> by_writer(const std::vector<FilePiece>& all, int writers) {
  std::vector<std::vector<FilePiece>> lists(writers);
  for (const FilePiece& file_piece : all) lists[file_piece.writer].push_back(file_piece);
  return lists;
}

}  // namespace

std::vector<std::int64_t> copied_bytes(const TrainConfig& train, const OptimizerConfig& optimizer,
                                       const Layout& layout, const Model& model,
                                       const std::vector<char>& is_here) {
  const StageRanks ranks{layout.grid.tensor, layout.grid.data, train.zero > 0 && layout.grid.data > 1};
  const std::vector<SavedTensor> tensors = saved_tensors(state_names(train, optimizer), model);
  std::vector<std::int64_t> most(ranks.data, 0);
  for (int lane = 0; lane < layout.grid.supernet; ++lane) {
    std::vector<char> writes(is_here);
    for (std::size_t unit = 0; unit < writes.size(); ++unit)
      if (writing_lane(layout, static_cast<int>(unit)) != lane) writes[unit] = 0;
    std::vector<std::int64_t> of_rank(ranks.size(), 0);
    for (const FilePiece& file_piece : shared_out(model, tensors, ranks, writes))
      of_rank[file_piece.writer] += copied_bytes(file_piece);
    for (int number = 0; number < ranks.size(); ++number) {
      std::int64_t& of_data_rank = most[ranks.data_rank(number)];
      of_data_rank = std::max(of_data_rank, of_rank[number]);
    }
  }
  return most;
}

StateCopy::StateCopy(Stage& stage, const Residency& residency, Group* ranks, std::vector<SavedTensor> tensors,
                     std::int64_t longest)
    : stage_(stage),
      residency_(residency),
      ranks_(ranks),
      tensors_(std::move(tensors)),
      stage_ranks_{stage.layout().grid.tensor, stage.layout().grid.data, residency.shares().is_sharded()},
      here_(stage_ranks_.number(stage.layout().coord.tensor, stage.layout().coord.data)) {
  std::vector<char> is_here(stage.model().units().size(), 0);
  const Layout& layout = stage.layout();
  for (const int unit : stage.local_units())
    is_here[unit] = stage.counts_here(unit) && writing_lane(layout, unit) == layout.coord.supernet;
  of_writer_ =
      by_writer(shared_out(stage.model(), tensors_, stage_ranks_, is_here, longest), stage_ranks_.size());
}

std::int64_t StateCopy::all_bytes() const {
  std::int64_t bytes = 0;
  for (const SavedTensor& saved : tensors_) bytes += saved.bytes();
  return bytes;
}

int StateCopy::world_rank(int number) const {
  Coord coord = stage_.layout().coord;
  coord.tensor = stage_ranks_.tensor_rank(number);
  coord.data = stage_ranks_.data_rank(number);
  return rank_at(stage_.layout().grid, coord);
}

const FilePiece* StateCopy::file_piece_of(int writer, std::size_t turn) const {
  return turn < of_writer_[writer].size() ? &of_writer_[writer][turn] : nullptr;
}

std::vector<StateCopy::Parcel> StateCopy::outgoing(std::size_t turn) const {
  std::vector<Parcel> parcels;
  for (int writer = 0; writer < stage_ranks_.size(); ++writer) {
    const FilePiece* file_piece = writer == here_ ? nullptr : file_piece_of(writer, turn);
    if (file_piece == nullptr) continue;
    Parcel parcel{writer, given_by(stage_.model(), tensors_, stage_ranks_, *file_piece, here_)};
    parcel.bytes = static_cast<std::size_t>(count_of(parcel.runs) * word);
    if (parcel.bytes > 0) parcels.push_back(std::move(parcel));
  }
  return parcels;
}

std::vector<StateCopy::Parcel> StateCopy::incoming(const FilePiece& file_piece) const {
  std::vector<Parcel> parcels;
  for (int giver = 0; giver < stage_ranks_.size(); ++giver) {
    if (giver == here_) continue;
    Parcel parcel{giver, given_by(stage_.model(), tensors_, stage_ranks_, file_piece, giver)};
    parcel.bytes = static_cast<std::size_t>(count_of(parcel.runs) * word);
    if (parcel.bytes > 0) parcels.push_back(std::move(parcel));
  }
  return parcels;
}

/// Reads the words of a run, each `step` words behind the one before.
void StateCopy::pack(const FilePiece& file_piece, const ElementRun& run, std::byte* words,
                     std::int64_t step) {
  const SavedTensor& saved = tensors_[file_piece.tensor];
  if (!reader_ || state_ != saved.state) {
    state_ = saved.state;
    reader_ = std::make_unique<StateReader>(stage_.context().backend, residency_, state_);
  }
  reader_->read(saved.tensor.pieces.front().unit, run.flat, run.count, words, step);
}

/// Every writer makes its next file_piece: one message between each two ranks at most.
void StateCopy::take_turn(std::size_t turn, const Place& place, const Ready& ready) {
  const FilePiece* mine = file_piece_of(here_, turn);
  const std::vector<Parcel> out = outgoing(turn), in = mine ? incoming(*mine) : std::vector<Parcel>{};
  const auto total = [](const std::vector<Parcel>& parcels) {
    std::size_t bytes = 0;
    for (const Parcel& parcel : parcels) bytes += parcel.bytes;
    return bytes;
  };
  sent_.resize(std::max(sent_.size(), total(out)));
  received_.resize(std::max(received_.size(), total(in)));
  std::optional<Messages> messages;
  if (!out.empty() || !in.empty()) messages.emplace(*ranks_);
  std::byte* from = sent_.data();
  for (const Parcel& parcel : out) {
    std::byte* next = from;
    for (const ElementRun& run : parcel.runs) {
      pack(*file_piece_of(parcel.peer, turn), run, next);
      next += run.count * word;
    }
    messages->send(from, parcel.bytes, world_rank(parcel.peer), 0);
    from += parcel.bytes;
  }
  std::byte* to = received_.data();
  for (const Parcel& parcel : in) {
    messages->receive(to, parcel.bytes, world_rank(parcel.peer), 0);
    to += parcel.bytes;
  }
  std::byte* words = mine ? place(*mine) : nullptr;
  const auto place_of = [&](const ElementRun& run) {
    return words +
           (stored_at(tensors_[mine->tensor].tensor, run.row, run.column) - mine->stored.first) * word;
  };
  const std::int64_t step = mine ? stored_step(tensors_[mine->tensor].tensor) : 1;
  if (mine)
    for (const ElementRun& run : given_by(stage_.model(), tensors_, stage_ranks_, *mine, here_))
      pack(*mine, run, place_of(run), step);
  if (messages)
    ranks_->waiting().until([&] { return messages->done(); },
                            [&] { return "the state to be saved: " + messages->missing(); });
  const std::byte* arrived = received_.data();
  for (const Parcel& parcel : in)
    for (const ElementRun& run : parcel.runs) {
      std::byte* to = place_of(run);
      if (step == 1) std::memcpy(to, arrived, static_cast<std::size_t>(run.count * word));
      for (std::int64_t i = 0; step != 1 && i < run.count; ++i)
        std::memcpy(to + i * step * word, arrived + i * word, static_cast<std::size_t>(word));
      arrived += run.count * word;
    }
  if (mine) ready(*mine, words);
}

void StateCopy::gather(const Place& place, const Ready& ready) {
  std::size_t turns = 0;
  for (const auto& file_pieces : of_writer_) turns = std::max(turns, file_pieces.size());
  for (std::size_t turn = 0; turn < turns; ++turn) take_turn(turn, place, ready);
  reader_.reset();
  sent_ = {};
  received_ = {};
}

}  // namespace mindpipe
