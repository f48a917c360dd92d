#include "plan/unequal_stages.h"

#include <algorithm>
#include <limits>

#include "config/config.h"
#include "core/refusal.h"
#include "plan/layout_search.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"
#include "plan/step_bound.h"

namespace mindpipe {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// The least sum of the times of stages that are shorter than `shorter`, stage by stage from the last one.
class LeastSum {
 public:
  LeastSum(const StagesProblem& problem, std::vector<int> shapes, bool uses_all)
      : problem_(problem), shapes_(std::move(shapes)), uses_all_(uses_all) {}

  /// The stages; empty: there are none.
  std::vector<PlacedStage> solve(double shorter) {
    std::vector<double> next(table_size(), never), sums(table_size());
    for (int ranks = 0; ranks <= problem_.ranks; ++ranks)
      if (!uses_all_ || ranks == 0) next[place(problem_.pieces, ranks)] = 0;
    const int most = std::min(problem_.pieces, problem_.ranks);
    double best = never;
    int stages = 0;
    choices_.assign(most + 1, std::vector<PlacedStage>(table_size()));
    for (int behind = 1; behind <= most; ++behind) {
      std::fill(sums.begin(), sums.end(), never);
      for (int first = 0; first < problem_.pieces; ++first)
        for (int ranks = 1; ranks <= problem_.ranks; ++ranks)
          take_best(first, ranks, behind, shorter, next, sums);
      if (const double sum = sums[place(0, problem_.ranks)]; sum < best) {
        best = sum;
        stages = behind;
      }
      std::swap(next, sums);
    }
    return walked(stages);
  }

 private:
  std::size_t table_size() const { return place(problem_.pieces, problem_.ranks) + 1; }
  std::size_t place(int first, int ranks) const {
    return static_cast<std::size_t>(first) * (problem_.ranks + 1) + ranks;
  }
  void take_best(int first, int ranks, int behind, double shorter, const std::vector<double>& next,
                 std::vector<double>& sums) {
    double& sum = sums[place(first, ranks)];
    const std::int64_t under_way = std::min(behind, problem_.micro_batches);
    for (int last = first + 1; last <= problem_.pieces; ++last)
      for (const int shape : shapes_) {
        const int left = ranks - problem_.shapes[shape].ranks();
        if (left < 0) continue;
        const StageCost& cost = problem_.cost(first, last, shape);
        const double whole = cost.time + next[place(last, left)];
        const bool fits = problem_.limit == 0 || cost.held + under_way * cost.in_flight <= problem_.limit;
        if (!fits || cost.time >= shorter || whole >= sum) continue;
        sum = whole;
        choices_[behind][place(first, ranks)] = {first, last, shape};
      }
  }
  std::vector<PlacedStage> walked(int stages) const {
    std::vector<PlacedStage> found;
    int ranks = problem_.ranks;
    for (int behind = stages, first = 0; behind > 0; --behind) {
      found.push_back(choices_[behind][place(first, ranks)]);
      first = found.back().last;
      ranks -= problem_.shapes[found.back().shape].ranks();
    }
    return found;
  }

  const StagesProblem& problem_;
  std::vector<int> shapes_;
  bool uses_all_;
  std::vector<std::vector<PlacedStage>> choices_;  ///< [stages from here on][first piece, ranks]
};

/// Lets the longest stage become shorter until there is nothing left: all trades of sum against maximum.
void descend(const StagesProblem& problem, LeastSum least, std::optional<StagesPlan>& best) {
  for (double shorter = never;;) {
    std::vector<PlacedStage> stages = least.solve(shorter);
    if (stages.empty()) return;
    double sum = 0, longest = 0;
    for (const PlacedStage& stage : stages) {
      const double time = problem.cost(stage.first, stage.last, stage.shape).time;
      sum += time;
      longest = std::max(longest, time);
    }
    const double time = sum + (problem.micro_batches - 1) * longest;
    if (!best || time < best->time) best = StagesPlan{time, std::move(stages)};
    shorter = longest;
  }
}

constexpr int most_pieces = 16;
constexpr double worth_saying = 0.03;

/// The outline of a model whose products so many ranks share; none: a rule refuses that.
std::optional<Outline> outline_with(const Config& config, int tensor, const LayoutChoice& like) {
  LayoutChoice layout = like;
  layout.grid = {tensor, 1, 1, 1};
  layout.schedule = ScheduleKind::one_forward_one_backward;
  layout.chunks = 1;
  layout.cuts.clear();
  layout.sequence_parallel = like.sequence_parallel && tensor > 1;
  std::optional<Outline> outline;
  refusal_of([&] {
    const Config known = with_layout(config, layout);
    outline = CostModel(known, make_layout(known, {})).outline();
    const Network network = network_on_paper(known);
    for (int block = 0; block < outline->all_blocks(); ++block) {
      BlockCost& cost = outline->blocks[block][0];
      cost.forward += tensor_time(*outline, network, cost.forward_sums);
      cost.backward += tensor_time(*outline, network, cost.backward_sums);
    }
  });
  return outline;
}

/// What a stage of blocks costs in one shape.
StageCost cost_of(const Outline& outline, int first_block, int last_block) {
  StageCost cost;
  std::vector<char> counted(outline.units.size(), 0);
  for (int block = first_block; block < last_block; ++block) {
    const BlockCost& one = outline.cost(block);
    cost.time += static_cast<double>(one.passes()) / outline.data;
    cost.in_flight += one.saved;
    for (const int unit : outline.units_used[block][0])
      if (counted[unit]++ == 0) cost.held += least_held_bytes(outline, unit);
  }
  return cost;
}

/// The first block of each piece, and the end: as even in time as pieces of whole blocks can be.
std::vector<int> pieces_of(const Outline& outline) {
  const int blocks = outline.all_blocks(), pieces = std::min(blocks, most_pieces);
  std::vector<double> before{0};
  for (int block = 0; block < blocks; ++block)
    before.push_back(before.back() + static_cast<double>(outline.cost(block).passes()));
  std::vector<int> first{0};
  for (int piece = 1; piece < pieces; ++piece) {
    int block = first.back() + 1;
    while (block < blocks - (pieces - piece) && before[block] < before.back() * piece / pieces) ++block;
    first.push_back(block);
  }
  first.push_back(blocks);
  return first;
}

std::optional<StagesProblem> problem_of(const Config& config, int ranks) {
  StagesProblem problem{.ranks = ranks,
                        .micro_batches = config.train.batch / config.train.micro_batch,
                        .limit = config.memory.device_limit};
  std::vector<Outline> outlines;
  for (int tensor = 1; tensor <= ranks; tensor *= 2) {
    const std::optional<Outline> outline = outline_with(config, tensor, layout_of(config));
    if (!outline) continue;
    for (int data = 1; data * tensor <= ranks; data *= 2)
      if (problem.micro_batches % data == 0) {
        problem.shapes.push_back({data, tensor});
        Outline& shared = outlines.emplace_back(*outline);
        shared.data = data;
        shared.sharded_optimizer = config.train.zero > 0;
        shared.sharded_gradients = config.train.zero > 1;
      }
  }
  if (outlines.empty()) return std::nullopt;
  const std::vector<int> first = pieces_of(outlines.front());
  problem.pieces = static_cast<int>(first.size()) - 1;
  problem.costs.resize(static_cast<std::size_t>(problem.pieces) * problem.pieces * problem.shapes.size());
  for (int from = 0; from < problem.pieces; ++from)
    for (int to = from + 1; to <= problem.pieces; ++to)
      for (std::size_t shape = 0; shape < problem.shapes.size(); ++shape)
        problem.costs[(static_cast<std::size_t>(from) * problem.pieces + to - 1) * problem.shapes.size() +
                      shape] = cost_of(outlines[shape], first[from], first[to]);
  return problem;
}

}  // namespace

std::optional<StagesPlan> best_stages(const StagesProblem& problem, bool equal) {
  std::optional<StagesPlan> best;
  std::vector<int> all;
  for (int shape = 0; shape < static_cast<int>(problem.shapes.size()); ++shape)
    if (equal) descend(problem, LeastSum(problem, {shape}, true), best);
    else all.push_back(shape);
  if (!equal) descend(problem, LeastSum(problem, all, false), best);
  return best;
}

std::string unequal_text(const Config& config, int ranks) {
  constexpr int most_ranks = 256;  // a search of seconds beyond that
  if (ranks < 3 || ranks > most_ranks) return "";
  const std::optional<StagesProblem> problem = problem_of(config, ranks);
  if (!problem) return "";
  const std::optional<StagesPlan> equal = best_stages(*problem, true), any = best_stages(*problem);
  if (!equal || !any || equal->time < any->time * (1 + worth_saying)) return "";
  std::string shapes;
  for (const PlacedStage& stage : any->stages) {
    const StageShape& shape = problem->shapes[stage.shape];
    shapes += fmt::format("{}{} x {}", shapes.empty() ? "" : ", ", shape.data, shape.tensor);
  }
  return fmt::format(
      "stages with unequal numbers of ranks, which grids cannot have, would be {:.1f} % faster by the sum of "
      "their times (data x tensor of each stage: {})\n",
      100 * (equal->time / any->time - 1), shapes);
}

}  // namespace mindpipe
