#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/combine.h"
#include "comm/group.h"
#include "core/sum_tree.h"
#include "core/tensor.h"

namespace mindpipe {

/// The tree sum of one vector between the ranks of a group, as a machine that is pushed on by `advance`.
///
/// The vector is cut into pieces, one for each rank. In the first half every rank sends part r of each of its
/// roots to rank r, which combines what arrives along the tree; in the second every rank sends its finished
/// part to all. The second half sends (n-1)/n of the vector per rank, the first so much for each root; each
/// takes one latency. Every rank begins the same exchanges in the same order.
class Exchange {
 public:
  enum class Halves { scatter, gather, both };

  /// A vector cut into pieces: [r] is rank r's. Sizes are equal on all ranks, and may be zero.
  using Pieces = std::vector<Tensor>;

  /// `pieces`: of the result. `roots`: of what this rank brings, as many as `tree` says, which outlives the
  /// exchange; none of them for a gather. Making one takes its number in the group's order of exchanges, so
  /// all ranks make them in the same order. `scratch` holds what arrives before it is combined:
  /// scratch_bytes() of it, untouched by others until the end. `own`: where this rank's part of the result
  /// goes (given: instead of its place in the vector). `route`: how the pieces' bytes travel.
  Exchange(Group& group, const SumTree& tree, Halves halves, Pieces pieces, std::vector<Pieces> roots,
           void* scratch, Combine combine, const Route& route = {}, const Tensor& own = {});

  /// Lets additions, and the second half, begin only where the rank's gate is open for this class.
  void ask_gate(TrafficClass kind) { gated_ = kind; }

  /// Bytes that arrive at any rank, at most, when the largest part has `part_bytes`.
  static std::size_t scratch_bytes(const SumTree& tree, std::size_t part_bytes) {
    return static_cast<std::size_t>(tree.most_arriving()) * whole_cache_lines(part_bytes);
  }

  /// Goes on as far as is possible without waiting; true once everything has arrived and left.
  bool advance();
  std::size_t bytes_sent() const { return messages_.bytes_sent(); }
  /// When it was over in the time of the ports that its messages passed, if any.
  std::int64_t ended() const { return messages_.ended(); }
  /// Names the ranks that keep the exchange from going on, in words.
  std::string missing() const { return messages_.missing(); }

 private:
  /// `bytes` rounded up to cache lines of 64 bytes.
  static constexpr std::size_t whole_cache_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  void begin_scatter();
  void finish_scatter();
  void begin_gather();

  enum class Stage { fresh, scattering, gathering, done };
  Group* group_;
  const SumTree* tree_;
  Messages messages_;
  Halves halves_;
  Stage stage_ = Stage::fresh;
  Pieces pieces_;
  std::vector<Pieces> roots_;
  std::vector<Tensor> sums_;  ///< this rank's part of the roots of all
  Tensor own_;
  std::byte* scratch_;
  Combine combine_;
  int tag_;
  std::optional<TrafficClass> gated_ = {};
};

}  // namespace mindpipe
