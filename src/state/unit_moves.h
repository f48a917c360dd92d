#pragma once
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "optim/unit_optimizer.h"
#include "program/action.h"

namespace mindpipe {

class Residency;
class Stage;

/// Brings states of units on their way to other ranks, and takes what arrives: of each unit its version, how
/// often a gradient was applied to it, its master (or values, where nothing is rounded) and its moments. A
/// message is made and taken apart a part at a time.
class UnitMoves {
 public:
  UnitMoves(Stage& stage, Residency& residency) : stage_(stage), residency_(residency) {}
  /// `channels`: to other ranks and from them; `most`: bytes of a part.
  void allocate(int channels, std::size_t most);
  /// Bytes of what a rank with channels needs beside a buffer for each.
  static std::size_t bytes(const Stage& stage);
  /// Bytes of a unit's state in a step that moves it: of this share a version, the master and moments.
  static std::int64_t bytes_of_step(const UnitOptimizer& share, const OptimizerConfig& config) {
    return 8 + (share.end() - share.begin()) * 4 * (1 + std::ssize(config.moments()));
  }
  /// Takes room for what one step's list moves, in place of what there was; an empty list needs none.
  void allocate(const std::vector<Action>& list);

  /// What left this rank: messages for readers and their bytes, and bytes that went home before drains.
  struct Sent {
    std::int64_t messages = 0, bytes = 0, home = 0;
  };
  const Sent& sent() const { return sent_; }

  /// Where a part of a message lies on its way: of one that leaves, filled with what it takes along.
  Tensor part_of(const Action& move);
  /// Takes what a part has brought; the last one completes its units, but for the versions that the host
  /// knows.
  void arrived(const Action& move);
  /// The version (f64) that a unit had where it came from last.
  Tensor version_of(int unit) const { return versions_.range(places_.at(unit), 1); }

 private:
  /// A part of a unit's state, in bytes.
  struct Piece {
    std::string_view name;
    Tensor bytes;
  };
  std::vector<Piece> pieces_of(int unit) const;
  std::int64_t bytes_of(const std::vector<int>& units) const;
  /// Which bytes of the states that it names a part has, from and to.
  std::pair<std::int64_t, std::int64_t> bytes_of_part(const Action& move) const;
  void keep_versions(const std::vector<int>& units);
  /// Calls see(piece, state, place) for each piece of the units' states that a part of a message has, with
  /// its place in the part.
  template <class See>
  void for_pieces(const Action& move, const See& see);
  void count(const Action& move);
  Tensor buffer_of(const Action& move);

  Stage& stage_;
  Residency& residency_;
  Arena arena_;
  Sent sent_;
  Tensor versions_;                     ///< version of each unit here, as it travels
  std::map<int, std::int64_t> places_;  ///< place of each unit's version among them
  std::vector<Arena> buffers_;
  std::map<std::pair<int, bool>, int> channels_;  ///< (peer, whether it leaves): the buffer
};

}  // namespace mindpipe
