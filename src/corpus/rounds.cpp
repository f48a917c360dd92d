#include "corpus/rounds.h"

#include <numeric>

#include "core/random.h"
#include "corpus/mersenne.h"

namespace mindpipe {

std::int64_t Rounds::at(std::int64_t index) {
  const std::int64_t round = index / count_, place = index % count_;
  if (!seed_) return place;
  if (round != round_) {
    const RandomStream seeds{*seed_, purpose_of("corpus.rounds")};
    order_.resize(static_cast<std::size_t>(count_));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Mersenne(seeds.word(static_cast<std::uint64_t>(round))).shuffle(order_.data(), count_);
    round_ = round;
  }
  return order_[place];
}

}  // namespace mindpipe
