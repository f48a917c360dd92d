#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/group.h"
#include "io/file.h"
#include "state/file_shares.h"
#include "state/state_reader.h"

namespace mindpipe {

/// The file_pieces of a run's state that this rank writes, brought together from the ranks of its stage that
/// have their elements. To be used between two steps.
class StateCopy {
 public:
  /// `ranks`: all of the job; none where there is only this one.
  StateCopy(Stage& stage, const Residency& residency, Group* ranks)
      : StateCopy(stage, residency, ranks, saved_tensors(residency.state_names(), stage.model()),
                  longest_file_piece) {}
  /// A copy of other tensors than a checkpoint's, in file_pieces of at most `longest` bytes.
  StateCopy(Stage& stage, const Residency& residency, Group* ranks, std::vector<SavedTensor> tensors,
            std::int64_t longest);

  const std::vector<SavedTensor>& tensors() const { return tensors_; }
  /// The file_pieces that this rank writes, in the order in which `gather` makes them.
  const std::vector<FilePiece>& mine() const { return of_writer_[here_]; }
  /// Bytes of all tensors together, whoever writes them.
  std::int64_t all_bytes() const;

  /// Says where a file_piece is to lie.
  using Place = std::function<std::byte*(const FilePiece& file_piece)>;
  using Ready = std::function<void(const FilePiece& file_piece, const std::byte* words)>;
  /// Makes one file_piece after the other at its place and hands it on. Collective.
  void gather(const Place& place, const Ready& ready);

 private:
  struct Parcel {
    int peer = 0;  ///< number in the stage
    std::vector<ElementRun> runs;
    std::size_t bytes = 0;
  };
  const FilePiece* file_piece_of(int writer, std::size_t turn) const;
  std::vector<Parcel> outgoing(std::size_t turn) const;
  std::vector<Parcel> incoming(const FilePiece& file_piece) const;
  void pack(const FilePiece& file_piece, const ElementRun& run, std::byte* words, std::int64_t step = 1);
  void take_turn(std::size_t turn, const Place& place, const Ready& ready);
  int world_rank(int number) const;

  Stage& stage_;
  const Residency& residency_;
  Group* ranks_;
  std::vector<SavedTensor> tensors_;
  StageRanks stage_ranks_;
  int here_;  ///< this rank's number in the stage
  std::vector<std::vector<FilePiece>> of_writer_;
  std::unique_ptr<StateReader> reader_;
  std::string_view state_;  ///< state that the reader reads
  std::vector<std::byte> sent_, received_;
};

/// What a file_piece may take of a copy in which each begins within a page as it does in the file, so that
/// its pages can be written from there.
inline std::int64_t copied_bytes(const FilePiece& file_piece) { return file_piece.bytes() + file_page; }
/// The room of the copy on each data rank, on paper: the most that any rank of its tensor group, in any lane,
/// needs.
std::vector<std::int64_t> copied_bytes(const TrainConfig& train, const OptimizerConfig& optimizer,
                                       const Layout& layout, const Model& model,
                                       const std::vector<char>& is_here);

}  // namespace mindpipe
