#include "plan/fit_prices.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/check.h"
#include "core/middle.h"
#include "core/text.h"
#include "program/choice_parts.h"

namespace mindpipe {
namespace {

constexpr int rounds = 60;
constexpr int enough = 3;     // passes, to know a price by
constexpr double step = 0.5;  // of what a price is off by its passes: other prices move in the same round
constexpr double least_of_planned = 0.01;  // whatever passes say: a price is above 0
constexpr double least = 1e-9;             // seconds
constexpr double even = 0.05;              // stages that differ by less are alike
constexpr double wide_spread = 1.2;  // heavy passes of a stage over its light ones, to tell its speed by
constexpr double much_better = 0.7;  // of what is unexplained
constexpr double slowest = 4;        // times as long as elsewhere

/// What is not a candidate's.
enum Shared { embedding, bridge, head, shared_kinds };

class PriceFit {
 public:
  PriceFit(const Outline& outline, const Space& space, std::span<const StagePasses> passes)
      : outline_(outline),
        space_(space),
        passes_(passes),
        slower_(outline.stages, 1),
        shares_(outline.stages) {
    for (int block = 0; block < outline.all_blocks(); ++block) note_block(block);
    for (double& price : planned_) price = std::max(price, least);
    prices_ = planned_;
    shared_ = planned_shared_;
    of_word_.resize(prices_.size());
    of_stage_.resize(slower_.size());
    for (std::size_t i = 0; i < passes.size(); ++i) note_pass(static_cast<int>(i));
  }

  FittedPrices fit() {
    FittedPrices found;
    found.forwards_off = median_over([&](int i) { return passes_[i].forward / expected(i); });
    found.backwards_off =
        median_over([&](int i) { return passes_[i].backward / planned_backward(passes_[i]); });
    for (double& price : prices_) price *= found.forwards_off;
    for (double& price : shared_) price *= found.forwards_off;
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t word = 0; word < prices_.size(); ++word) fit_word(word);
      for (int stage = 0; stage < outline_.stages; ++stage) fit_stage(stage);
      make_even();
    }
    price_unseen();
    return told(std::move(found));
  }

 private:
  void note_block(int block) {
    const std::vector<BlockPart> parts =
        outline_.parts_of.empty() ? std::vector<BlockPart>{} : outline_.parts_of[block];
    if (parts.empty()) {
      const int kind = kind_of(block);
      planned_shared_[kind] += seconds(outline_.cost(block).forward);
      return;
    }
    for (const BlockPart& part : parts)
      for (int i = 0; i < part.count; ++i) {
        const Candidate& candidate = space_.candidates(part.place)[i];
        if (!is_priced(candidate)) continue;
        const auto [word, is_new] = words_.try_emplace(candidate.word(), static_cast<int>(planned_.size()));
        if (is_new) {
          planned_.push_back(0);
          blocks_.push_back(0);
        }
        double& mean = planned_[word->second];
        mean += (seconds(outline_.cost(block, part.first + i).forward) - mean) / ++blocks_[word->second];
      }
  }
  int kind_of(int block) const {
    return block == 0 ? embedding : block + 1 == outline_.all_blocks() ? head : bridge;
  }
  static double seconds(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

  void note_pass(int i) {
    const StagePasses& pass = passes_[i];
    std::vector<int>& words = words_of_pass_.emplace_back();
    std::vector<int>& shared = shared_of_pass_.emplace_back();
    for (int block = pass.first; block < pass.last; ++block) {
      if (outline_.parts_of.empty() || outline_.parts_of[block].empty()) {
        shared.push_back(kind_of(block));
        continue;
      }
      for (const BlockPart& part : outline_.parts_of[block]) {
        const Candidate& candidate = space_.candidates(part.place)[pass.choice[part.place]];
        if (is_priced(candidate)) words.push_back(words_.at(candidate.word()));
      }
    }
    if (words.empty()) return;
    std::sort(words.begin(), words.end());
    for (std::size_t k = 0; k < words.size(); ++k)
      if (k == 0 || words[k] != words[k - 1]) of_word_[words[k]].push_back(i);
    of_stage_[pass.stage].push_back(i);
    shares_[pass.stage] = !shared.empty();
  }

  double of_candidates(int i) const {
    double sum = 0;
    for (const int word : words_of_pass_[i]) sum += prices_[word];
    return sum;
  }
  double of_shared(int i) const {
    double sum = 0;
    for (const int kind : shared_of_pass_[i]) sum += shared_[kind];
    return sum;
  }
  double expected(int i) const { return slower_[passes_[i].stage] * (of_candidates(i) + of_shared(i)); }
  double planned_backward(const StagePasses& pass) const {
    std::int64_t sum = 0;
    for (int block = pass.first; block < pass.last; ++block)
      for_candidates(outline_, pass.choice, block,
                     [&](int candidate) { sum += outline_.cost(block, candidate).backward; });
    return std::max(least, seconds(sum));
  }
  double median_over(const std::function<double(int)>& of) const {
    std::vector<double> all;
    for (const auto& stage : of_stage_)
      for (const int i : stage) all.push_back(of(i));
    return lower_middle(std::move(all));
  }

  /// What the passes with a word take more than these prices say is the word's.
  void fit_word(std::size_t word) {
    if (std::ssize(of_word_[word]) < enough) return;
    std::vector<double> more;
    for (const int i : of_word_[word]) {
      const auto& words = words_of_pass_[i];
      const auto times = std::count(words.begin(), words.end(), static_cast<int>(word));
      more.push_back((passes_[i].forward - expected(i)) / slower_[passes_[i].stage] /
                     static_cast<double>(times));
    }
    prices_[word] =
        std::max(least_of_planned * planned_[word], prices_[word] + step * lower_middle(std::move(more)));
  }

  /// A stage is as slow as its passes say; where it has what all share, as its heavy ones say beside its
  /// light ones, if that explains its passes much better than another price of what all share. Where all
  /// stages have such blocks, these keep the plan's share: what each of them takes cannot be told from
  /// passes.
  void fit_stage(int stage) {
    const std::vector<int>& here = of_stage_[stage];
    if (std::ssize(here) < enough) return;
    if (!shares_[stage]) {
      std::map<int, std::vector<double>> times;
      for (const int i : here) times[passes_[i].rank].push_back(passes_[i].forward / of_candidates(i));
      std::vector<double> of_ranks;
      for (auto& [rank, of_passes] : times) of_ranks.push_back(lower_middle(std::move(of_passes)));
      slower_[stage] = lower_middle(std::move(of_ranks));
      return;
    }
    if (!has_anchor()) return;
    const double sloped = slope(here);
    slower_[stage] = unexplained(here, sloped) < much_better * unexplained(here, 1) ? sloped : 1;
    const double before = of_shared(here.front());
    if (before <= 0) return;
    const double times = std::max(0.25, lower_middle(rest(here, slower_[stage])) / before);
    for (const int kind : shared_of_pass_[here.front()]) shared_[kind] *= times;
  }
  bool has_anchor() const { return std::find(shares_.begin(), shares_.end(), false) != shares_.end(); }
  /// What passes of a stage that is so slow take beside their candidates.
  std::vector<double> rest(const std::vector<int>& passes, double slower) const {
    std::vector<double> all;
    for (const int i : passes) all.push_back(passes_[i].forward / slower - of_candidates(i));
    return all;
  }
  double unexplained(const std::vector<int>& passes, double slower) const {
    std::vector<double> all = rest(passes, slower);
    const double middle = lower_middle(all);
    for (double& one : all) one = slower * std::abs(one - middle);
    return lower_middle(std::move(all));
  }
  double slope(std::vector<int> passes) const {
    std::sort(passes.begin(), passes.end(),
              [&](int a, int b) { return of_candidates(a) < of_candidates(b); });
    const std::size_t third = std::max<std::size_t>(1, passes.size() / 3);
    const auto middle = [&](std::size_t first, const std::function<double(int)>& of) {
      std::vector<double> all;
      for (std::size_t i = first; i < first + third; ++i) all.push_back(of(passes[i]));
      return lower_middle(std::move(all));
    };
    const auto candidates = [&](int i) { return of_candidates(i); };
    const auto time = [&](int i) { return passes_[i].forward; };
    const double light = middle(0, candidates), heavy = middle(passes.size() - third, candidates);
    if (heavy < wide_spread * light) return 1;
    return std::clamp((middle(passes.size() - third, time) - middle(0, time)) / (heavy - light), 1 / slowest,
                      slowest);
  }
  /// The median stage takes as long as prices say: of those that have nothing that all share, whose speed is
  /// known best; where these are fewer than two, of all whose speed is known.
  void make_even() {
    std::vector<double> best_known, known;
    for (int stage = 0; stage < outline_.stages; ++stage) {
      if (!shares_[stage]) best_known.push_back(slower_[stage]);
      if (!shares_[stage] || slower_[stage] != 1) known.push_back(slower_[stage]);
    }
    if (known.empty()) return;
    const double most = lower_middle(best_known.size() < 2 ? known : best_known);
    for (double& times : slower_) times /= most;
    for (double& price : prices_) price *= most;
    for (double& price : shared_) price *= most;
  }
  void price_unseen() {
    std::vector<double> off;
    for (std::size_t word = 0; word < prices_.size(); ++word)
      if (std::ssize(of_word_[word]) >= enough) off.push_back(prices_[word] / planned_[word]);
    const double all = off.empty() ? 1 : lower_middle(std::move(off));
    for (std::size_t word = 0; word < prices_.size(); ++word)
      if (std::ssize(of_word_[word]) < enough) prices_[word] = planned_[word] * all;
  }

  FittedPrices told(FittedPrices found) const {
    double sum = 0;
    for (const double price : prices_) sum += price;
    found.unit = sum / static_cast<double>(prices_.size());
    for (const auto& [word, number] : words_) {
      found.candidates[word] = prices_[number] / found.unit;
      found.off[word] = prices_[number] / planned_[number];
    }
    found.embedding = shared_[embedding] / found.unit;
    found.bridge = shared_[bridge] / found.unit;
    found.head = shared_[head] / found.unit;
    found.backward = median_over([&](int i) { return passes_[i].backward / expected(i); });
    found.update =
        median_over([&](int i) { return passes_[i].update / slower_[passes_[i].stage] / of_candidates(i); });
    for (int i = 0; i < static_cast<int>(passes_.size()); ++i)
      if (const double alike = expected(i) / slower_[passes_[i].stage]; alike > 0)
        found.passes.push_back({passes_[i].rank, passes_[i].subnet,
                                (passes_[i].forward + passes_[i].backward) / (alike * (1 + found.backward))});
    found.stages = slower_;
    for (double& times : found.stages)
      if (std::abs(times - 1) < even) times = 1;
    return found;
  }

  const Outline& outline_;
  const Space& space_;
  std::span<const StagePasses> passes_;
  std::map<std::string, int> words_;
  std::vector<int> blocks_;               ///< for each word, the number of blocks that it may stand in
  std::vector<double> planned_, prices_;  ///< seconds of each word
  std::array<double, shared_kinds> planned_shared_{}, shared_{};
  std::vector<double> slower_;  ///< for each stage, how many times as long its passes take
  std::vector<bool> shares_;    ///< whether it has what all subnets share
  std::vector<std::vector<int>> of_word_, of_stage_;  ///< passes
  std::vector<std::vector<int>> words_of_pass_, shared_of_pass_;
};

}  // namespace

FittedPrices fit_prices(const Outline& outline, const Space& space, std::span<const StagePasses> passes) {
  return PriceFit(outline, space, passes).fit();
}

std::string text_of(const FittedPrices& prices, const std::string& of_run) {
  std::string text = fmt::format(
      "# Prices that the last subnets of {} were measured to have: supernet.prices reads this file.\n"
      "unit: {:.4g} us\nbackward: {:.4g}\nupdate: {:.4g}\nembedding: {:.4g}\nhead: {:.4g}\n"
      "measured: true  # of whole passes, with their tensor sums and the zeroing of gradients\n",
      of_run, prices.unit * 1e6, prices.backward, prices.update, prices.embedding, prices.head);
  if (prices.bridge > 0) text += fmt::format("bridge: {:.4g}\n", prices.bridge);
  if (std::any_of(prices.stages.begin(), prices.stages.end(), [](double times) { return times != 1; })) {
    std::vector<std::string> stages;
    for (const double times : prices.stages) stages.push_back(fmt::format("{:.3g}", times));
    text += fmt::format("stages: [{}]\n", join(stages, ", "));
  }
  text += "candidates:\n";
  for (const auto& [word, price] : prices.candidates) text += fmt::format("  {}: {:.4g}\n", word, price);
  return text;
}

}  // namespace mindpipe
