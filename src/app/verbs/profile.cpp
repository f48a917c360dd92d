#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "app/energy/node_meters.h"
#include "app/plan/open_choice.h"
#include "app/plan/profile_origin.h"
#include "app/run/run.h"
#include "app/run/version.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "comm/link_times.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/middle.h"
#include "core/text.h"
#include "io/file.h"
#include "plan/layout_space.h"
#include "runtime/block_timer.h"

namespace mindpipe {
namespace {

constexpr int fewest_passes = 5, most_passes = 1000;
constexpr double enough_spread = 0.02;

/// One block of one layout, whose work no earlier one does, and what it took.
struct Wish {
  std::size_t layout;
  int block;
  std::uint64_t work;
  MeasuredPass pass = {};
  double described = 0;  ///< seconds by the description of the device

  double factor() const { return (pass.forward + pass.input + pass.weight) / described; }
};

/// Times everything that is wished for.
class Profiling {
 public:
  Profiling(Run& run, const Config& config, const std::vector<LayoutChoice>& layouts) : run_(run) {
    std::set<std::uint64_t> known;
    for (const LayoutChoice& layout : layouts) {
      const std::optional<Config> one = with_layout_if_allowed(config, layout);
      if (!one) continue;  // a rule refuses so many tensor ranks
      configs_.push_back(*one);
      CostModel costs(*one, make_layout(*one, {}));
      for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block)
        if (const std::uint64_t work = costs.work_of(block); known.insert(work).second)
          wishes_.push_back({configs_.size() - 1, block, work});
    }
    MP_REQUIRE(
        !wishes_.empty(), Exit::bad_configuration,
        "profile: no number of tensor ranks that this configuration and job allow has prices to measure");
  }

  Profile measure(double budget) {
    Profile profile;
    const std::int64_t start = now_ns();
    for (std::size_t i = 0; i < wishes_.size(); ++i) {
      measure_one(wishes_[i], i == 0 ? &profile : nullptr, budget / static_cast<double>(wishes_.size()));
      info("{:3} of {}: {}", i + 1, wishes_.size(), row_of_table(wishes_[i]));
    }
    std::vector<Wish*> scattered;
    for (Wish& wish : wishes_)
      if (any_rank(run_.world(), wish.pass.spread > enough_spread)) scattered.push_back(&wish);
    const double left = std::max(0.0, budget - seconds_since(start));
    for (Wish* wish : scattered) {
      const MeasuredPass before = wish->pass;
      measure_one(*wish, nullptr, left / static_cast<double>(scattered.size()));
      if (before.spread < wish->pass.spread) wish->pass = before;
      info("again: {}", row_of_table(*wish));
    }
    std::vector<double> factors;
    for (const Wish& wish : wishes_) {
      profile.passes[wish.work] = wish.pass;
      factors.push_back(wish.factor());
    }
    profile.factor = upper_middle(std::move(factors));
    return profile;
  }

  /// All prices, a line each, with a mark at those that scatter.
  std::string table() const {
    std::string text = "prices of a micro-batch\n";
    int marked = 0;
    for (const Wish& wish : wishes_) {
      const bool scatters = wish.pass.spread > enough_spread;
      text += fmt::format("{} {}\n", scatters ? '*' : ' ', row_of_table(wish));
      marked += scatters ? 1 : 0;
    }
    if (marked > 0)
      text += fmt::format(
          "*: the middle half of {} of {} prices lies further than {:.0f} % off the median, though they were "
          "measured twice; plans say it by wider ranges\n",
          marked, wishes_.size(), 100 * enough_spread);
    return text;
  }

 private:
  std::string row_of_table(const Wish& wish) const {
    const Config& config = configs_[wish.layout];
    return fmt::format(
        "{}, tensor {}{}{}{}: forward {}, backward {}, within {:.1f} %; {:.2f} times as described",
        wish.pass.block, config.grid.tensor, config.train.sequence_parallel ? ", sequence parallel" : "",
        config.train.recompute.any() ? ", recomputed" : "",
        row_of(config.schedule.kind).splits_backward ? ", backward in halves" : "",
        human_seconds(wish.pass.forward), human_seconds(wish.pass.input + wish.pass.weight),
        100 * wish.pass.spread, wish.factor());
  }

  /// `rates`: takes the rates of updates and of zeroing, too.
  void measure_one(Wish& wish, Profile* rates, double budget) {
    const Config& config = configs_[wish.layout];
    CostModel costs(config, make_layout(config, {}));
    BlockTimer timer(config, {.rank = run_.world().rank}, costs);
    if (rates != nullptr) {
      rates->update = timer.update_rate();
      rates->clear = timer.clear_rate();
    }
    wish.pass = time_one(timer, wish.block, budget);
    wish.described = costs.described_seconds(wish.block);
  }

  /// All ranks time the same block at once, so that they share memory and clocks as in a step.
  MeasuredPass time_one(BlockTimer& timer, int block, double budget) {
    std::int64_t start = 0;
    return timer.time(block, [&](int passes, double spread) {
      if (passes == 0) {
        any_rank(run_.world(), false);
        start = now_ns();
      }
      run_.watchdog().arm(run_.config().watchdog.start, "a profile", "watchdog.start");
      const double spent = seconds_since(start);
      const bool wants = passes < fewest_passes ||
                         (passes < most_passes && spread > enough_spread / 2 && spent < budget) ||
                         spent < std::min(0.05, budget / 4);
      return passes < fewest_passes || any_rank(run_.world(), wants);
    });
  }

  Run& run_;
  std::vector<Config> configs_;
  std::vector<Wish> wishes_;
};

/// Messages between ranks of a node and, where the job has several, between two nodes.
void measure_links(Profile& profile, const Run& run) {
  std::map<std::string, int> numbers;
  std::vector<int> nodes;
  for (const RankPlace& place : run.places())
    nodes.push_back(numbers.emplace(place.host, static_cast<int>(numbers.size())).first->second);
  const NodeLinkTimes links = time_links(run.world(), nodes);
  profile.latency = links.within.latency;
  profile.rate = links.within.rate;
  profile.latency_between_nodes = links.between.latency;
  profile.rate_between_nodes = links.between.rate;
  if (numbers.size() > 1)
    profile.ranks_per_node = static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes.front()));
  const auto tell = [](const char* where, const LinkTimes& link) {
    if (link.rate > 0)
      info("messages {}: {:.3g} GB/s after {}", where, link.rate * 1e-9,
           link.latency > 0 ? human_seconds(link.latency)
                            : "a latency that other processes hid (profile again)");
  };
  tell("within a node", links.within);
  tell("between nodes", links.between);
}

/// The power that the job takes on rank 0's node, if it has a meter.
class PowerOfNode {
 public:
  /// Collective over the job.
  PowerOfNode(const Run& run, const Config& config) {
    if (config.energy.meter == EnergyMeter::none) return;
    const JobNode node =
        node_of_rank(run.world(), run.places(), gpu_of_rank(config.device, run.places(), run.world().rank));
    if (!run.is_rank_0()) return;
    std::vector<std::unique_ptr<Meter>> meters = open_meters(config.energy, config.device, node).meters;
    if (meters.empty()) return;
    for (const auto& meter : meters) names_.push_back(meter->describe());
    reader_ = reader_of(std::move(meters), node, run.places());
  }
  /// What it has taken in the mean until now.
  std::string text() {
    if (!reader_) return "";
    reader_->stop();
    const EnergyPoint &first = reader_->points().front(), &last = reader_->points().back();
    return fmt::format("{}: the job took {:.0f} W here in the mean\n", join(names_, ", "),
                       last.joules / (1e-9 * static_cast<double>(last.ns - first.ns)));
  }

 private:
  std::vector<std::string> names_;
  std::unique_ptr<NodeReader> reader_;
};

}  // namespace

int profile(const Arguments& arguments, const Config& given) {
  MP_REQUIRE(!row_of(given.model.kind).trains_subnets, Exit::bad_configuration,
             "profile measures blocks of models that train in steps, and model.kind is {} (a supernet's run "
             "leaves prices.yaml itself)",
             given.model.kind);
  MP_REQUIRE(row_of(given.device.kind).computes, Exit::bad_configuration,
             "profile measures a device, and device.kind is {} (take cpu or cuda)", given.device.kind);
  WrittenKeys written;
  Config config = read_config(arguments.config, arguments.overrides, written);
  config.device.profile.clear();
  const int ranks = launch().ranks;
  const SearchFreedom free = freedom_of(config, written);
  const std::vector<LayoutChoice> layouts = layouts_with_prices(config, ranks, free);
  Run run(arguments, config, [&](const Config& known, const World&) { return known; });
  config.device.threads = run.threads();
  std::optional<NewFile> file;  // a place that takes none is refused before anything is measured
  if (run.is_rank_0()) file.emplace(arguments.profile.output);
  Profiling profiling(run, config, layouts);
  PowerOfNode node(run, config);
  Profile measured = profiling.measure(arguments.profile.budget);
  const std::string power = node.text();
  const ProfileOrigin origin = origin_here(config.device);
  measured.machine = origin.machine;
  measured.instructions = origin.instructions;
  measured.kernels = origin.kernels;
  measured.program = version();
  measured.threads = config.device.threads;
  measured.ranks = ranks;
  if (ranks > 1) measure_links(measured, run);
  if (!run.is_rank_0()) return 0;
  const std::string text = text_of(measured);
  file->write(text.data(), text.size());
  file->commit();
  print(profiling.table() + power);
  print(fmt::format(
      "{}: {} prices, {:.2f} times as long as described; give it to plans with device.profile={}\n",
      arguments.profile.output, measured.passes.size(), measured.factor, arguments.profile.output));
  return 0;
}

}  // namespace mindpipe
