#include <algorithm>

#include "supernet/parent_pool.h"

namespace mindpipe {
namespace {

class PoolOfTheBest final : public ParentPool {
 public:
  explicit PoolOfTheBest(int parents) : parents_(static_cast<std::size_t>(parents)) {}

  void add(std::int64_t id, const Objectives& objectives) override {
    const std::pair scored(objectives.front(), id);
    best_.insert(std::upper_bound(best_.begin(), best_.end(), scored), scored);
    if (best_.size() > parents_) best_.pop_back();
  }
  std::int64_t size() const override { return std::ssize(best_); }
  std::int64_t pick(std::uint32_t word, std::uint32_t) const override {
    return best_[std::uint64_t{word} * best_.size() >> 32].second;
  }

 private:
  std::size_t parents_;
  std::vector<std::pair<double, std::int64_t>> best_;  ///< score and id, in ascending order
};

}  // namespace

std::unique_ptr<ParentPool> pool_of_the_best(int parents) { return std::make_unique<PoolOfTheBest>(parents); }

}  // namespace mindpipe
