#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/worker.h"

namespace mindpipe {

/// Compares what several ranks hold alike: values over data, and where nothing is sharded masters and
/// moments; tensors that no tensor rank has a part of; the homes of a tied table; what all subnets share,
/// over lanes. Each tensor has a 64-bit hash, and only these travel.
class Replicas {
 public:
  explicit Replicas(Worker& worker);

  /// Whether there is anything that several ranks hold; the same on every rank.
  bool are_held() const { return are_held_; }
  /// Compares, between two steps. Empty: all copies agree; else a sentence, the same on every rank, that
  /// names a tensor and whose copy is another one. Collective over the world.
  std::string difference();

  /// A rank's copy of a tensor.
  struct Copy {
    int rank = 0;
    std::string host;
    std::uint64_t hash = 0;
    bool operator==(const Copy&) const = default;
  };
  /// Says which of several copies of a tensor are others than most; empty: none. Where there is no most, all
  /// of them are named.
  static std::string odd_ones(const std::string& tensor, const std::vector<Copy>& copies);

 private:
  /// The part of a tensor's shard that this rank keeps of one state.
  struct Part {
    std::string_view state;
    int unit = 0, param = 0, shard = 0;
    std::int64_t first = 0, count = 0;  ///< in the unit's flat order
  };
  void add_parts(std::string_view state, int unit);
  bool is_alike_over_data(const Part& part) const;
  bool is_alike_over_tensor(const Part& part) const;
  /// Whether other stages, or lanes, hold a unit too. A candidate of a supernet is newest in one lane alone.
  bool has_other_homes(int unit) const {
    const Outline& outline = worker_.plan().outline;
    return outline.homes_of(unit).size() > 1 || (outline.lanes > 1 && outline.units[unit].shared);
  }
  std::uint64_t hash_of(const Part& part) const;
  bool differ(const std::vector<std::uint64_t>& hashes);
  bool homes_differ(Communicator& group, const std::vector<std::uint64_t>& hashes);
  std::string name_odd_ones(const std::vector<std::uint64_t>& hashes);

  Worker& worker_;
  std::vector<std::string_view> states_;
  std::vector<Part> parts_;
  bool are_held_ = false;
};

}  // namespace mindpipe
