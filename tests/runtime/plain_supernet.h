#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "optim/rate.h"
#include "runtime/plain_loop.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// What training some subnets leaves behind, in full precision.
struct SubnetsOutcome {
  std::vector<double> losses;          ///< each subnet's mean loss over its targets
  std::vector<std::int64_t> counters;  ///< for each unit, how many subnets, or windows, came to update it
  bool copies_agree = true;            ///< whether the stages that use what all share have equal copies
  Sha256::Digest newest{}, before_newest{};  ///< digests of all state, with either version of what all share
  bool operator==(const SubnetsOutcome&) const = default;
};

/// Where two outcomes differ first; empty when every bit is the same.
inline std::string difference(const SubnetsOutcome& got, const SubnetsOutcome& wanted) {
  for (std::size_t i = 0; i < wanted.losses.size(); ++i)
    if (i >= got.losses.size() ||
        std::bit_cast<std::uint64_t>(got.losses[i]) != std::bit_cast<std::uint64_t>(wanted.losses[i]))
      return fmt::format("loss of subnet {}: {} and not {}", i, i < got.losses.size() ? got.losses[i] : -1.0,
                         wanted.losses[i]);
  for (std::size_t u = 0; u < wanted.counters.size(); ++u)
    if (got.counters.size() != wanted.counters.size() || got.counters[u] != wanted.counters[u])
      return fmt::format("updates of unit {}: {} and not {}", u,
                         u < got.counters.size() ? got.counters[u] : -1, wanted.counters[u]);
  if (!got.copies_agree) return "two stages' copies of what all share";
  if (got.newest != wanted.newest) return "SHA-256 of weights and state";
  if (got.before_newest != wanted.before_newest) return "SHA-256 of the older version of what all share";
  return {};
}

/// Subnets as one would train them without a program, a planner or an executor: one after the other, forward,
/// backward, update of each unit that the subnet uses; what all share once a window.
class PlainSupernet : PlainLoop {
 public:
  explicit PlainSupernet(const Config& config) : PlainLoop(config) {
    for (std::size_t u = 0; u < states_.size(); ++u)
      if (model_->is_shared(static_cast<int>(u))) versions_[u] = {states_[u].master, states_[u].master};
  }

  SubnetsOutcome run(const std::vector<Subnet>& subnets) {
    SubnetsOutcome outcome;
    for (const Subnet& subnet : subnets) {
      train(subnet, outcome);
      const bool closes = (subnet.id + 1) % config_.supernet.window == 0 || &subnet == &subnets.back();
      if (closes) apply_window(subnet.id);
    }
    for (int u = 0; u < static_cast<int>(states_.size()); ++u) outcome.counters.push_back(comes_[u]);
    read_version(0);
    outcome.newest = digest();
    read_version(1);
    outcome.before_newest = digest();
    return outcome;
  }

 private:
  struct Whole {
    std::vector<std::int64_t> totals;
    bool is_marked = false;
  };

  /// Lets what all share be read in the newest version, or the one before.
  void read_version(int ago) {
    for (auto& [u, versions] : versions_) {
      State& state = states_[u];
      std::swap(state.master, versions[versions.size() - 1 - ago]);
      round_values(*model_->units()[u], state);
      std::swap(state.master, versions[versions.size() - 1 - ago]);
    }
  }

  void train(const Subnet& subnet, SubnetsOutcome& outcome) {
    StepInput input = feed_.at(static_cast<int>(subnet.id));
    input.choice = subnet.choice.data();
    read_version(1);  // the window before this one is applied, but not read
    std::vector<int> chosen;
    for (const Model::Block& block : model_->blocks())
      for (const Model::Block::Choice& part : block.choices)
        if (const int unit = part.units[subnet.choice[part.place]]; unit >= 0) chosen.push_back(unit);
    std::vector<Floats64> losses;
    std::map<int, std::vector<Floats>> parts;
    for (auto& unit : model_->units())
      for (int use = 0; use < unit->uses(); ++use) backend_->fill({unit->gradients().accumulators(use), 0});
    for (int shard = 0; shard < layout_.data_shards; ++shard) {
      losses.push_back({pass_of_shard(input, shard, true)});
      for (const int u : chosen) {
        Unit& unit = *model_->units()[u];
        parts[u].push_back(gradient_of(unit, 0));
        backend_->fill({unit.gradients().accumulators(0), 0});
      }
    }
    valid_ += input.valid;
    for (const int u : chosen) {
      Floats gradient = tree(parts.at(u));
      update_alone(u, gradient, static_cast<double>(input.valid),
                   rate_at(config_.optimizer.rate, subnet.id, config_.train.steps));
    }
    outcome.losses.push_back(tree(losses)[0] / static_cast<double>(input.valid));
  }

  void update_alone(int u, Floats& gradient, double valid, double rate) {
    Unit& unit = *model_->units()[u];
    ++comes_[u];
    double squares = 0;
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
      squares += tensor_squares(unit, p, gradient);
    double factor = valid == 0 ? 0 : 1 / (1.0 / targets() * valid);
    const double norm = std::sqrt(squares) * factor;
    if (config_.train.clip > 0 && norm > config_.train.clip) factor *= config_.train.clip / (norm + 1e-6);
    if (valid == 0 || !std::isfinite(squares)) return;
    applied_ = ++counts_[u];
    update(unit, states_[u], gradient, static_cast<float>(factor), rate);
  }

  /// What a micro-batch gives to what all share, as whole numbers.
  void end_micro_batch() override {
    for (auto& [u, versions] : versions_) {
      Unit& unit = *model_->units()[u];
      Whole& whole = wholes_[u];
      whole.totals.resize(unit.flat_count());
      for (int use = 0; use < unit.uses(); ++use) {
        for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
          if (unit.gradients().has_sequence_parts(p)) {
            const Tensor all = unit.gradients().sequence_parts(p, use);
            for (std::int64_t i = 0; i < all.shape[0]; ++i)
              add(whole, unit.flat_offset(p, 0), all.at(i).as<float>(), all.shape[1]);
          }
        add(whole, 0, unit.gradients().root(use).as<float>(), unit.flat_count());
        backend_->fill({unit.gradients().accumulators(use), 0});
      }
    }
  }

  static void add(Whole& whole, std::int64_t first, const float* gradient, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double scaled = std::ldexp(static_cast<double>(gradient[i]), 40);
      if (!(std::abs(gradient[i]) <= 1024)) whole.is_marked = true;
      else whole.totals[first + i] += static_cast<std::int64_t>(std::nearbyint(scaled));
    }
  }

  void apply_window(std::int64_t last) {
    for (auto& [u, versions] : versions_) {
      Whole& whole = wholes_[u];
      Floats gradient(whole.totals.size());
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = whole.is_marked ? std::numeric_limits<float>::quiet_NaN()
                                      : std::ldexp(static_cast<float>(whole.totals[i]), -40);
      update_alone(u, gradient, static_cast<double>(valid_),
                   rate_at(config_.optimizer.rate, last, config_.train.steps));
      versions.push_back(states_[u].master);
      whole = {};
    }
    valid_ = 0;
  }

  std::map<int, std::vector<Floats>> versions_;  ///< each shared unit's versions, the newest last
  std::map<int, Whole> wholes_;
  std::map<int, std::int64_t> counts_;  ///< each unit's applied updates
  std::map<int, std::int64_t> comes_;   ///< each unit's updates, skipped ones included
  std::int64_t valid_ = 0;
};

}  // namespace mindpipe
