
#include "supernet/parent_pool.h"

namespace mindpipe {
namespace {

class PoolOfRanks final : public ParentPool {
 public:
  explicit PoolOfRanks(int population) : population_(static_cast<std::size_t>(population)) {}

  void add(std::int64_t id, const Objectives& objectives) override {
    ids_.push_back(id);
    points_.push_back(objectives);
    judge();
    if (ids_.size() <= population_) return;
    std::size_t worst = 0;
    for (std::size_t at = 1; at < ids_.size(); ++at)
      if (wins(worst, at)) worst = at;
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(worst));
    points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(worst));
    judge();
  }
  std::int64_t size() const override { return std::ssize(ids_); }
  std::int64_t pick(std::uint32_t word, std::uint32_t other) const override {
    const std::size_t a = std::uint64_t{word} * ids_.size() >> 32,
                      b = std::uint64_t{other} * ids_.size() >> 32;
    return ids_[wins(a, b) ? a : b];
  }

 private:
  void judge() {
    ranks_ = ranks_of(points_);
    crowding_ = crowding_of(points_, ranks_);
  }
  bool wins(std::size_t a, std::size_t b) const {
    if (ranks_[a] != ranks_[b]) return ranks_[a] < ranks_[b];
    if (crowding_[a] != crowding_[b]) return crowding_[a] > crowding_[b];
    return ids_[a] < ids_[b];
  }

  std::size_t population_;
  std::vector<std::int64_t> ids_;
  std::vector<Objectives> points_;
  std::vector<int> ranks_;
  std::vector<double> crowding_;
};

}  // namespace

std::unique_ptr<ParentPool> pool_of_ranks(int population) {
  return std::make_unique<PoolOfRanks>(population);
}

}  // namespace mindpipe
