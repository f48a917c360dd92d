#include "trace/even_stages.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mindpipe {
namespace {

/// A move has to make two stages more alike by this share of the longer one: less is noise.
constexpr double worth = 0.02;

/// Blocks of one chunk, in the order of the model.
struct Segment {
  int stage = 0, first = 0, last = 0;
};

bool is_of_pass(const TraceWorks::Work& work) { return is_pass(action_of(work.kind)); }

std::vector<Segment> segments_of(const WorkModel& model) {
  std::map<int, Segment> chunks;
  for (const TraceWorks::Work& work : model.works().all())
    if (is_of_pass(work)) {
      Segment& segment =
          chunks.try_emplace(work.chunk, Segment{work.stage, work.first, work.last}).first->second;
      segment.first = std::min(segment.first, work.first);
      segment.last = std::max(segment.last, work.last);
    }
  std::vector<Segment> segments;
  for (const auto& [chunk, segment] : chunks) segments.push_back(segment);
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.first < b.first; });
  return segments;
}

/// What each block computes in a step: of its stage's time its share of those passes that come in single
/// blocks, or where they do not, an equal one.
std::vector<double> times_of_blocks(const WorkModel& model, const std::vector<Segment>& segments,
                                    const std::vector<double>& time) {
  std::vector<double> alone(segments.back().last, 0.0), blocks(alone.size(), 0.0);
  for (int number = 0; number < model.works().count(); ++number) {
    const TraceWorks::Work& work = model.works().at(number);
    if (is_of_pass(work) && work.last - work.first == 1) alone[work.first] += model.G(number);
  }
  for (int stage = 0; stage < static_cast<int>(time.size()); ++stage) {
    double sum = 0;
    int count = 0;
    bool all = true;
    const auto each = [&](const auto& see) {
      for (const Segment& segment : segments)
        for (int block = segment.first; block < segment.last && segment.stage == stage; ++block) see(block);
    };
    each([&](int block) {
      sum += alone[block];
      ++count;
      all = all && alone[block] > 0;
    });
    each([&](int block) { blocks[block] = time[stage] * (all ? alone[block] / sum : 1.0 / count); });
  }
  return blocks;
}

}  // namespace

double beside_others(const std::vector<double>& time, int stage) {
  const double all = std::accumulate(time.begin(), time.end(), 0.0);
  return time[stage] * static_cast<double>(time.size() - 1) / (all - time[stage]);
}

std::optional<double> beside_paper(const ReplayGraph& graph, const Durations& paper,
                                   const std::vector<double>& time, int stage) {
  if (paper.size() != time.size()) return {};
  std::vector<double> ratios = time;
  for (std::size_t list = 0; list < paper.size(); ++list) {
    const int rank = rank_at(graph.grid(), {0, 0, static_cast<int>(list), 0});
    double priced = 0;
    for (int action = graph.first_of(rank); action < graph.first_of(rank + 1); ++action)
      if (is_pass(graph.at(action))) priced += static_cast<double>(paper[list][graph.index_of(action)]);
    if (priced <= 0) return {};
    ratios[list] /= priced;
  }
  return beside_others(ratios, stage);
}

bool has_blocks_to_move(const WorkModel& model) {
  const std::vector<Segment> segments = segments_of(model);
  return std::any_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return segment.last - segment.first > 1; });
}

std::vector<double> even_stages(const WorkModel& model, const std::vector<double>& time) {
  std::vector<Segment> segments = segments_of(model);
  std::vector<double> even = time;
  if (segments.empty()) return even;
  const std::vector<double> blocks = times_of_blocks(model, segments, time);
  struct Move {
    std::size_t left = 0;
    bool forth = true;
    double gains = 0;
  };
  // Each move makes the sum of squares less, by twice the block's time times this, so they end.
  const auto gains_of = [&](const Segment& from, const Segment& to, int block) {
    const double left = even[from.stage] - even[to.stage] - blocks[block];
    return from.last - from.first < 2 || left < worth * even[from.stage] ? 0 : blocks[block] * left;
  };
  while (true) {
    Move best;
    for (std::size_t left = 0; left + 1 < segments.size(); ++left) {
      const Segment &one = segments[left], &next = segments[left + 1];
      if (one.stage == next.stage || one.last != next.first) continue;
      if (const double gains = gains_of(one, next, one.last - 1); gains > best.gains)
        best = {left, true, gains};
      if (const double gains = gains_of(next, one, next.first); gains > best.gains)
        best = {left, false, gains};
    }
    if (best.gains <= 0) break;
    Segment &one = segments[best.left], &next = segments[best.left + 1];
    const int block = best.forth ? one.last - 1 : next.first;
    even[(best.forth ? one : next).stage] -= blocks[block];
    even[(best.forth ? next : one).stage] += blocks[block];
    one.last = next.first = best.forth ? block : block + 1;
  }
  return even;
}

}  // namespace mindpipe
