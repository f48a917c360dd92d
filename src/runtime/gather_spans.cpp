#include "runtime/gather_spans.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string_view>

#include "core/clock.h"

namespace mindpipe {
namespace {

constexpr std::array<std::string_view, 4> operations{"sum", "sum_scatter", "gather", "maximum"};

void gather_times(std::vector<TracedRank>& ranks, const Program& program, const Recorder& recorder, int stage,
                  std::int64_t shift, const SumOverGroup& sum) {
  const auto shifted = [&](std::int64_t at) { return at == 0 ? 0 : at + shift; };
  std::vector<std::int64_t> numbers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t step = 0; step < recorder.held(); ++step)
      for (std::size_t i = 0; i < program.ranks[rank].size(); ++i) {
        const bool own = static_cast<int>(rank) == stage;
        const Recorder::Times times = own ? recorder.times(step, i) : Recorder::Times{};
        numbers.insert(numbers.end(), {shifted(times.start), shifted(times.end)});
      }
  sum(numbers);
  auto next = numbers.begin();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t step = 0; step < recorder.held(); ++step) {
      auto& times = ranks[rank].steps.emplace_back();
      for (std::size_t i = 0; i < program.ranks[rank].size(); ++i, next += 2)
        times.push_back({next[0], next[1]});
    }
}

/// Tensor sums: how many each stage has in each step, then each as four numbers.
void gather_sums(std::vector<TracedRank>& ranks, const Recorder& recorder, int stage, std::int64_t shift,
                 const SumOverGroup& sum) {
  const std::size_t steps = recorder.held();
  std::vector<std::int64_t> counts(ranks.size() * steps, 0);
  for (std::size_t step = 0; stage >= 0 && step < steps; ++step)
    counts[stage * steps + step] = static_cast<std::int64_t>(recorder.sums(step).size());
  sum(counts);
  std::vector<std::int64_t> numbers(4 * std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 0);
  if (stage >= 0) {
    const std::int64_t before =
        std::accumulate(counts.begin(), counts.begin() + stage * steps, std::int64_t{0});
    auto next = numbers.begin() + 4 * before;
    for (std::size_t step = 0; step < steps; ++step)
      for (const Recorder::Sum& one : recorder.sums(step)) {
        const auto name = std::find(operations.begin(), operations.end(), std::string_view(one.operation));
        for (std::int64_t number :
             {std::int64_t{name - operations.begin()}, one.start + shift, one.end + shift, one.bytes})
          *next++ = number;
      }
  }
  if (!numbers.empty()) sum(numbers);
  auto next = numbers.begin();
  for (std::size_t at = 0; at < counts.size(); ++at) {
    std::vector<Recorder::Sum>& sums = ranks[at / steps].sums.emplace_back();
    for (std::int64_t i = 0; i < counts[at]; ++i, next += 4)
      sums.push_back({operations.at(next[0]).data(), next[1], next[2], next[3]});
  }
}

}  // namespace

std::int64_t clock_shift(bool is_first, const SumOverGroup& sum) {
  // Every node has a clock of its own. All ranks leave the same collective at about the same time: what their
  // clocks say then, against the first rank's, is the shift. Of several such moments the middle one counts.
  // Below a tenth of a second it is taken for the collective's own spread: ranks of one node share their
  // clock, and clocks of different nodes began to count at different boots.
  constexpr std::size_t moments = 5;
  constexpr std::int64_t least = 100'000'000;
  std::vector<std::int64_t> mine;
  for (std::size_t k = 0; k < moments; ++k) {
    std::vector<std::int64_t> one{1};
    sum(one);
    mine.push_back(now_ns());
  }
  std::vector<std::int64_t> shifts = is_first ? mine : std::vector<std::int64_t>(moments, 0);
  sum(shifts);
  for (std::size_t k = 0; k < moments; ++k) shifts[k] -= mine[k];
  std::nth_element(shifts.begin(), shifts.begin() + moments / 2, shifts.end());
  const std::int64_t shift = shifts[moments / 2];
  return std::abs(shift) < least ? 0 : shift;
}

void gather_texts(const std::string& own, int rank, int ranks, const SumOverGroup& sum,
                  const std::function<void(const std::string&)>& write) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks), 0);
  sizes[rank] = static_cast<std::int64_t>(own.size());
  sum(sizes);
  constexpr std::size_t numbers_at_once = 1 << 16, each = sizeof(std::int64_t);
  for (int from = 0; from < ranks; ++from) {
    const auto size = static_cast<std::size_t>(sizes[from]);
    for (std::size_t first = 0; first < size; first += numbers_at_once * each) {
      const std::size_t count = std::min(size - first, numbers_at_once * each);
      std::vector<std::int64_t> numbers((count + each - 1) / each, 0);
      if (rank == from) std::memcpy(numbers.data(), own.data() + first, count);
      sum(numbers);
      write(std::string(reinterpret_cast<const char*>(numbers.data()), count));
    }
  }
}

std::vector<TracedRank> gather_spans(const Program& program, const Recorder& recorder, int stage,
                                     const std::function<std::int64_t(int action)>& bytes_of,
                                     std::int64_t shift, const SumOverGroup& sum) {
  std::vector<TracedRank> ranks(program.ranks.size());
  gather_times(ranks, program, recorder, stage, shift, sum);
  gather_sums(ranks, recorder, stage, shift, sum);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<std::int64_t>& bytes = ranks[rank].bytes;
    bytes.resize(program.ranks[rank].size(), 0);
    for (std::size_t i = 0; static_cast<int>(rank) == stage && i < bytes.size(); ++i)
      bytes[i] = bytes_of(static_cast<int>(i));
    sum(bytes);
  }
  return ranks;
}

}  // namespace mindpipe
