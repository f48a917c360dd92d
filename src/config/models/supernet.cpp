#include "config/models/supernet.h"

#include <algorithm>
#include <filesystem>

#include "config/config.h"
#include "config/models/prices.h"
#include "config/models/search.h"
#include "config/rules.h"
#include "config/settings.h"
#include "core/text.h"

namespace mindpipe::supernet {
namespace {

/// What 64 bits hold of gradients as whole numbers, each of up to 2^50.
constexpr std::int64_t most_contributions = 8191;

/// Gradients that a subnet gives to one parameter that all share: of each micro-batch of each logical shard,
/// at each place of use of the table.
std::int64_t contributions_of_subnet(const Settings& m, const Config& config) {
  const std::int64_t uses = !m.tied || m.space.is_of_pictures() ? 1 : m.space.has_encoder() ? 3 : 2;
  return std::int64_t{config.train.batch} / config.train.micro_batch * uses *
         std::max(1, config.reproducible.tensor);
}

void check_window(const Settings& m, const Config& config, const Complaints& complain) {
  const std::int64_t each = contributions_of_subnet(m, config), window = config.supernet.window;
  const std::int64_t fitting = most_contributions / each;
  complain.require(fitting > 0, "train.micro_batch",
                   "is {} and train.batch {}: what all subnets share is given {} gradients by one subnet, "
                   "and the sum of a window holds {} (a larger micro-batch gives fewer)",
                   config.train.micro_batch, config.train.batch, each, most_contributions);
  complain.require(window <= fitting, "supernet.window",
                   "is {} subnets, which give {} gradients to what all share, and their sum holds {} (a "
                   "window of {} or fewer would do)",
                   window, window * each, most_contributions, fitting);
}

void check_candidates(const Settings& m, const Config& config, const Complaints& complain) {
  const std::string misfit = misfit_of(m.space, nullptr, m.width, config.reproducible.tensor);
  complain.require(misfit.empty(), "model.space", "gives {}", misfit);
}

void check_sampler(const Settings& m, const Config& config, const Complaints& complain) {
  const SupernetConfig& s = config.supernet;
  const auto kind = kind_named<SamplerKind>(s.sampler);
  std::error_code none;
  complain.require(kind || std::filesystem::exists(s.sampler, none), "supernet.sampler",
                   "is {}, which is neither {} nor a file (its path is taken from the directory of the "
                   "command)",
                   s.sampler, "uniform, permutation, spaced");
  complain.require(s.spacing == 0 || kind == SamplerKind::spaced, "supernet.spacing",
                   "is {}, but supernet.sampler is {} (spaced has a spacing)", s.spacing, s.sampler);
  for (int block = 0; block < m.space.blocks() && s.spacing > 0; ++block) {
    const int count = static_cast<int>(m.space.candidates(block).size());
    complain.require(count == 1 || s.spacing < count, "supernet.spacing",
                     "is {}, but {} has {} candidates (one comes again after {} subnets at most; the "
                     "usual spacing is {})",
                     s.spacing, m.space.name_of(block), count, count - 1, std::max(1, 2 * count / 3));
  }
}

/// Evaluations and checkpoints happen at drains: between windows, where nothing is in flight.
void check_drains(const Config& config, const Complaints& complain) {
  const int window = config.supernet.window;
  const auto between = [&](int every, const char* key) {
    const int below = every / window * window;
    complain.require(
        every % window == 0, key,
        "is {}, amid a window of supernet.window = {} subnets (the nearest between two are {}{})", every,
        window, below > 0 ? fmt::format("{} and ", below) : "", below + window);
  };
  between(config.run.stop_after, "run.stop_after");
  between(config.train.evaluate_every, "train.evaluate_every");
  between(config.checkpoint.every, "checkpoint.every");
  between(config.guard.replicas_every, "guard.replicas_every");
}

void check_prices(const Config& config, const Complaints& complain) {
  complain.require(are_there(config.supernet.prices), "supernet.prices",
                   "is {}, which is neither {} nor a file (its path is taken from the directory of the "
                   "command)",
                   config.supernet.prices, words_of_prices());
  prices_of(config);  // reads all of them
}

/// What is there for steps, and not yet, or never, for subnets.
void check_what_is_left_out(const Config& config, const Complaints& complain) {
  complain.require(config.train.noise_every == 0, "train.noise_every",
                   "is {}, but a supernet's units are updated each by itself and its subnets have no common "
                   "gradient (set it to 0)",
                   config.train.noise_every);
  complain.require(config.train.norms_every == 0, "train.norms_every",
                   "is {}, but a supernet's units are updated each by itself and its subnets have no common "
                   "gradient (set it to 0)",
                   config.train.norms_every);
  complain.require(config.guard.spike == 0, "guard.spike",
                   "is {}, but the losses of a supernet are those of different networks (set it to 0)",
                   shortest(config.guard.spike));
  complain.require(config.guard.rollbacks <= 0, "guard.rollbacks",
                   "is {}, but a supernet has nothing to go back from: a unit whose gradient is not finite "
                   "keeps its weights (set it to 0)",
                   config.guard.rollbacks);
  const bool is_causal = config.schedule.kind == ScheduleKind::causal;
  complain.require(
      config.grid.supernet <= 1 || is_causal, "grid.supernet",
      "is {}, and schedule.kind {} (units move between lanes in causal order alone; set it to 1, "
      "or schedule.kind to causal)",
      config.grid.supernet, config.schedule.kind);
  complain.require(
      config.supernet.admission == 0 || config.grid.supernet <= config.supernet.admission, "grid.supernet",
      "is {}, but supernet.admission lets {} be in flight, where each lane needs one (take an admission of "
      "{}, "
      "better of {}, or auto)",
      config.grid.supernet,
      config.supernet.admission == 1 ? "1 subnet" : fmt::format("{} subnets", config.supernet.admission),
      config.grid.supernet, config.grid.supernet * std::max(1, config.grid.pipeline));
  complain.require(config.supernet.cuts == SubnetCuts::home || is_causal, "supernet.cuts",
                   "is {}, and schedule.kind {} (units move between stages in causal order alone; set it to "
                   "home, or schedule.kind to causal)",
                   config.supernet.cuts, config.schedule.kind);
  const int blocks = config.model.supernet.space.layers();
  complain.require(
      config.supernet.cuts == SubnetCuts::home || blocks >= 2 * config.grid.pipeline, "supernet.cuts",
      "is {}, but model.space, {}, has {} blocks for {} stages (cuts of subnets' own move blocks "
      "from stage to stage, which takes two for each; take fewer stages, or home)",
      config.supernet.cuts, config.model.supernet.space.name, blocks, config.grid.pipeline);
  complain.require(config.train.zero == 0, "train.zero",
                   "is {}, but the optimizer state of a supernet is not sharded over data (each unit is "
                   "updated in the action of its subnet; set it to 0)",
                   config.train.zero);
}

}  // namespace

std::vector<Setting> settings(Config& config) {
  SupernetConfig& s = config.supernet;
  constexpr double many = 1 << 30;
  constexpr Range automatic{1, many, false, false, "auto"};
  using Role = Setting::Role;
  std::vector<Setting> all = space_settings(config.model.supernet, config);
  const auto add = [&](Role role, const char* key, auto* member, const char* meaning,
                       const Range& range = {}) {
    all.push_back(Setting(key, member, meaning, range).playing(role));
  };
  add(Role::arithmetic, "supernet.sampler", &s.sampler,
      "how subnets are drawn: uniform; permutation (a block takes each candidate once before any comes "
      "again); "
      "spaced (so, and none again within supernet.spacing subnets); or a file with a choice a line");
  add(Role::arithmetic, "supernet.spacing", &s.spacing,
      "spaced: how many subnets later a candidate may come again; auto: two thirds of a block's candidates",
      automatic);
  add(Role::arithmetic, "supernet.window", &s.window,
      "subnets that read one version of what all share (embeddings, the last norm, the softmax); their "
      "summed "
      "gradient is applied once, at the window's end",
      Range{1, many});
  add(Role::layout, "supernet.admission", &s.admission,
      "subnets that may be in flight, from the oldest on; auto: the fewest within 1 % of the speed of twice "
      "the stages, in simulation",
      automatic);
  add(Role::layout, "supernet.slots", &s.slots,
      "slots of each stage, one a micro-batch in flight; auto: for each stage the fewest within 1 %, in "
      "simulation",
      automatic);
  add(Role::layout, "supernet.cuts", &s.cuts,
      "home: one cut for all subnets; own: an even cut for each subnet, in which a block runs on its home "
      "stage or the one beside it");
  all.back() = std::move(all.back()).or_searched();
  add(Role::layout, "supernet.prices", &s.prices,
      "what passes and updates take, for the planner and for an emulated device: empty or paper (what "
      "device.description says), equal (all candidates alike), h200 (an estimate), or a file like "
      "configs/prices/h200.yaml");
  add(Role::course, "supernet.evaluate_subnets", &s.evaluate_subnets,
      "subnets whose mean loss an evaluation gives, always the same", Range{1, 1 << 20});
  const Space& space = config.model.supernet.space;
  if (space.is_of_pictures() || space.blocks() == 0)
    add(Role::course, "supernet.calibrate_batches", &s.calibrate_batches,
        "pictures: batches of data.train, always the same, on which a network's batch norms collect their "
        "statistics before it is evaluated",
        Range{1, 1 << 20});
  for (Setting& setting : search_settings(config.search)) all.push_back(std::move(setting));
  return all;
}

void fill_in(Config& config) {
  fill_in_space(config.model.supernet, config);
  fill_in_search(config.model.supernet.space, config.search);
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.supernet;
  check_space(m, config, complain);
  check_candidates(m, config, complain);
  const int blocks = m.space.layers();
  complain.require(blocks >= config.grid.pipeline, "grid.pipeline",
                   "is {}, but model.space, {}, has {} blocks (a stage has at least one)",
                   config.grid.pipeline, m.space.name, blocks);
  check_sampler(m, config, complain);
  check_window(m, config, complain);
  check_drains(config, complain);
  check_prices(config, complain);
  check_search(config, complain);
  check_what_is_left_out(config, complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  return rows_of_space(config.model.supernet, config);
}

}  // namespace mindpipe::supernet
