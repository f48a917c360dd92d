#include "config/rules.h"

#include <algorithm>
#include <numeric>

#include "config/config.h"
#include "config/tokens.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

/// What each kind of model has for rules, in the order of the table of kinds.
struct KindRules {
  void (*fill_in)(Config&);
  void (*check)(const Config&, const Complaints&);
  std::vector<Extent> (*split_by_shards)(const Config&);
};
#define MINDPIPE_KIND_RULES(kind, ...) {kind::fill_in, kind::check, kind::split_by_shards},
constexpr KindRules rules_of_kinds[] = {MINDPIPE_MODELS(MINDPIPE_KIND_RULES)};
#undef MINDPIPE_KIND_RULES

const KindRules& rules_of(const ModelConfig& model) {
  return rules_of_kinds[static_cast<std::size_t>(model.kind)];
}

/// "2 or 4": the divisors next to a number that is none.
std::string divisors_near(int number, int wanted) {
  int below = 1, above = number;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) (d < wanted ? below = d : above = std::min(above, d));
  return above > wanted && above != below ? fmt::format("{} or {}", below, above) : fmt::format("{}", below);
}

void check_shards(const Config& c, const Complaints& complain) {
  const int shards = c.reproducible.tensor;
  if (shards > 1) {
    const std::vector<Extent> extents = rules_of(c.model).split_by_shards(c);
    int common = 0;
    for (const Extent& extent : extents) common = std::gcd(common, extent.number);
    for (const Extent& extent : extents)
      complain.require(extent.number % shards == 0,
                       c.reproducible.tensor_follows ? "grid.tensor" : "reproducible.tensor",
                       "is {} and {} {} (every logical shard gets an equal part; the nearest that divides "
                       "all that is cut is {})",
                       shards, extent.key, extent.number, divisors_near(common, shards));
  }
  const auto fits = [&](int degree, int logical, const std::string& axis) {
    if (degree == 0 || logical == 0) return;
    complain.require(logical % degree == 0, "grid." + axis,
                     "is {} and reproducible.{} {} (ranks share the logical shards equally; the nearest that "
                     "divides them is {})",
                     degree, axis, logical, divisors_near(logical, degree));
  };
  fits(c.grid.tensor, c.reproducible.tensor, "tensor");
  fits(c.grid.data, c.reproducible.data, "data");
}

void check_batch(const Config& c, const Complaints& complain) {
  const TrainConfig& t = c.train;
  complain.require(t.micro_batch <= t.batch, "train.micro_batch",
                   "is {} and train.batch {} (a micro-batch is a part of the batch)", t.micro_batch, t.batch);
  const std::int64_t unit = std::int64_t{t.micro_batch} * std::max(1, c.reproducible.data);
  const std::int64_t near = std::max<std::int64_t>(1, (t.batch + unit / 2) / unit) * unit;
  if (c.reproducible.data > 1)
    complain.require(t.batch % unit == 0, "train.batch",
                     "is {}, but must be a multiple of train.micro_batch x reproducible.data = {} x {} (the "
                     "nearest is {})",
                     t.batch, t.micro_batch, c.reproducible.data, near);
  complain.require(t.batch % unit == 0, "train.batch",
                   "is {}, but must be a multiple of train.micro_batch = {} (the nearest is {})", t.batch,
                   t.micro_batch, near);
}

void check_rate(const Config& c, const Complaints& complain) {
  const RateConfig& rate = c.optimizer.rate;
  const bool all_warm_up = rate.warmup >= c.train.steps;  // then nothing after it is ever reached
  complain.require(rate.floor <= rate.peak, "optimizer.rate.floor",
                   "is {} and optimizer.rate.peak {} (the floor is not above the peak)", shortest(rate.floor),
                   shortest(rate.peak));
  if (rate.kind == RateKind::wsd && !all_warm_up)
    complain.require(std::int64_t{rate.warmup} + rate.decay <= std::max(1, c.train.steps),
                     "optimizer.rate.decay",
                     "is {}, warm-up {} and train.steps {} (both parts lie within the run)", rate.decay,
                     rate.warmup, c.train.steps);
  if (rate.kind == RateKind::linear || rate.kind == RateKind::cosine)
    complain.require(rate.decay >= std::min(rate.warmup, c.train.steps), "optimizer.rate.decay",
                     "is {} and optimizer.rate.warmup {} (the floor is reached after the warm-up)",
                     rate.decay, rate.warmup);
  complain.require(rate.drops.empty() || rate.kind == RateKind::steps, "optimizer.rate.drops",
                   "names drops, but optimizer.rate.kind is {} (steps has drops)", rate.kind);
  complain.require(std::is_sorted(rate.drops.begin(), rate.drops.end(), std::less_equal<>()),
                   "optimizer.rate.drops", "is [{}] (each drop comes after the one before)",
                   joined(rate.drops));
}

void check_energy(const Config& c, const Complaints& complain) {
  const EnergyConfig& energy = c.energy;
  const bool names_source = energy.source.find_first_not_of(" \t\r\n") != std::string::npos;
  complain.require(energy.carbon_intensity > 0 || energy.source.empty(), "energy.source",
                   "is given and energy.carbon_intensity is not: carbon needs an intensity, in grams a kWh");
  complain.require(energy.carbon_intensity == 0 || names_source, "energy.carbon_intensity",
                   "is {} and energy.source does not say whose number that is (\"RTE, mean of 2024\")",
                   shortest(energy.carbon_intensity));
  complain.require(!energy.forecast.empty() || (energy.deadline == 0 && energy.duration == 0),
                   energy.deadline > 0 ? "energy.deadline" : "energy.duration",
                   "is given and energy.forecast, for which it counts, is not");
}

void check_guard(const Config& c, const Complaints& complain) {
  complain.require(c.guard.rollbacks <= 0 || c.checkpoint.is_periodic(), "guard.rollbacks",
                   "is {}, but checkpoint.every and checkpoint.every_time are 0 (a run goes back to a "
                   "checkpoint: set one of them, or guard.rollbacks to 0)",
                   c.guard.rollbacks);
}

/// Refuses a setting of models that train in steps, if `is_set`, where subnets are trained.
template <class... Parts>
void require_steps(const Config& c, const Complaints& complain, bool is_set, const std::string& key,
                   fmt::format_string<Parts...> sentence, Parts&&... parts) {
  complain.require(!is_set || !row_of(c.model.kind).trains_subnets, key, sentence,
                   std::forward<Parts>(parts)...);
}

/// What is swapped is copied on the rank where it was made, in a step.
void check_swaps(const Config& c, const Complaints& complain) {
  const ChosenBlocks &swap = c.train.swap, &again = c.train.recompute;
  if (!swap.any()) return;
  require_steps(c, complain, true, "train.swap",
                "is {} and model.kind {} (a supernet's subnets go through as they come: leave it out)",
                swap.text(), c.model.kind);
  const auto both =
      std::find_if(again.numbers.begin(), again.numbers.end(), [&](int block) { return swap.has(block); });
  if (both != again.numbers.end())
    complain.require(false, "train.swap",
                     "is {}, and train.recompute computes block {} again (one or the other)", swap.text(),
                     *both);
  complain.require(swap.are_some() || !again.any(), "train.swap",
                   "is {} and train.recompute {} (name the blocks that are swapped)", swap.text(),
                   again.text());
}

void check_grid(const Config& c, const Complaints& complain) {
  const ScheduleConfig& s = c.schedule;
  complain.require(row_of(s.kind).of_subnets == row_of(c.model.kind).trains_subnets, "schedule.kind",
                   "is {}, and model.kind {} ({} for a supernet, the others for models that train in steps)",
                   s.kind, c.model.kind, names_with<ScheduleKind>(&ScheduleRow::of_subnets, ", "));
  complain.require(row_of(s.kind).may_have(s.chunks), "schedule.chunks",
                   "is {} and schedule.kind {} (only {} cut stages into chunks{})", s.chunks, s.kind,
                   names_with<ScheduleKind>(&ScheduleRow::has_chunks, " and "),
                   row_of(s.kind).in_v ? "; a V has two" : "");
  complain.require(!row_of(s.kind).in_v || c.grid.pipeline != 1, "schedule.kind",
                   "is {} and grid.pipeline 1 (a V goes down the stages and up again: take two or more, or "
                   "another schedule)",
                   s.kind);
  complain.require(row_of(s.kind).has_groups || s.groups.empty(),
                   s.groups.forward.empty() ? "schedule.groups.backward" : "schedule.groups.forward",
                   "is given and schedule.kind is {} (only {} has groups)", s.kind,
                   names_with<ScheduleKind>(&ScheduleRow::has_groups, " and "));
  complain.require(row_of(s.kind).splits_backward || s.memory == 0, "schedule.memory",
                   "is {} and schedule.kind {} (only {} put weight gradients off)", s.memory, s.kind,
                   names_with<ScheduleKind>(&ScheduleRow::splits_backward, ", "));
  require_steps(c, complain, c.train.recompute.are_some(), "train.recompute",
                "is {} and model.kind {} (its blocks are one of several candidates: none or block)",
                c.train.recompute.text(), c.model.kind);
  check_swaps(c, complain);
  complain.require(std::is_sorted(s.cuts.begin(), s.cuts.end(), std::less_equal<>()), "schedule.cuts",
                   "is [{}] (each cut lies behind the one before)", joined(s.cuts));
  if (!s.cuts.empty() && c.grid.pipeline > 0)
    complain.require(static_cast<int>(s.cuts.size()) == c.grid.pipeline * s.chunks - 1, "schedule.cuts",
                     "names {} cuts, but {} stages of {} chunks have {}", s.cuts.size(), c.grid.pipeline,
                     s.chunks, c.grid.pipeline * s.chunks - 1);
}

/// Units of supernets, and those that change their stage, would take their state along from host to host.
void check_memory(const Config& c, const Complaints& complain) {
  if (c.memory.optimizer == StatePlace::device) return;
  require_steps(
      c, complain, true, "memory.optimizer",
      "is {}, but model.kind is {}, whose units travel with their masters and moments (leave it out)",
      c.memory.optimizer, c.model.kind);
  complain.require(
      !c.repartition.moves(), "memory.optimizer",
      "is {}, and repartition moves blocks with their masters and moments (leave one of them out)",
      c.memory.optimizer);
}

void check_repartition(const Config& c, const Complaints& complain) {
  const std::vector<CutAt>& at = c.repartition.at;
  if (!c.repartition.moves()) return;
  const char* moving = at.empty() ? "repartition.every" : "repartition.at";
  require_steps(c, complain, true, moving,
                "moves blocks, but model.kind is {}, whose units move by their versions, and not between "
                "steps (leave it out; supernet.cuts: own lets blocks run on several stages)",
                c.model.kind);
  complain.require(
      c.grid.pipeline != 1, moving,
      "moves blocks between stages, but the pipeline has one stage (take a larger grid.pipeline, or "
      "leave it out)");
  complain.require(
      c.schedule.chunks == 1 && row_of(c.schedule.kind).chunks() == 1, moving,
      "moves blocks, but each stage has {} chunks, whose neighbours are on other stages at both ends, "
      "so that each boundary would move blocks around the whole ring (take schedule.chunks: 1 and no V, "
      "or leave it out)",
      std::max(c.schedule.chunks, row_of(c.schedule.kind).chunks()));
  complain.require(at.empty() || c.repartition.every == 0, "repartition.every",
                   "is {}, and repartition.at names moves by hand (leave one of them out)",
                   c.repartition.every);
  for (std::size_t i = 0; i < at.size(); ++i) {
    complain.require(i == 0 || at[i - 1].step < at[i].step, "repartition.at",
                     "names step {} behind step {} (each move comes after the one before)", at[i].step,
                     at[i == 0 ? 0 : i - 1].step);
    complain.require(std::is_sorted(at[i].cuts.begin(), at[i].cuts.end(), std::less_equal<>()),
                     "repartition.at", "has the cuts [{}] in step {} (each cut lies behind the one before)",
                     joined(at[i].cuts), at[i].step);
    if (c.grid.pipeline > 1)
      complain.require(static_cast<int>(at[i].cuts.size()) == c.grid.pipeline * c.schedule.chunks - 1,
                       "repartition.at", "names {} cuts in step {}, and {} stages have {}", at[i].cuts.size(),
                       at[i].step, c.grid.pipeline, c.grid.pipeline * c.schedule.chunks - 1);
  }
}

}  // namespace

void fill_in(Config& c) {
  fill_in_tokens(c);
  rules_of(c.model).fill_in(c);
  RateConfig& rate = c.optimizer.rate;
  if (rate.decay == 0)
    rate.decay = std::max(1, rate.kind == RateKind::wsd ? c.train.steps / 10 : c.train.steps);
  if (c.grid.supernet == 0 && !row_of(c.model.kind).trains_subnets) c.grid.supernet = 1;  // it has no lanes
  if (row_of(c.schedule.kind).in_v && c.schedule.chunks == 1) c.schedule.chunks = 2;
  ReproducibleConfig& shards = c.reproducible;
  if (shards.tensor == 0) {
    shards.tensor = c.grid.tensor;
    shards.tensor_follows = true;
  }
  if (shards.data == 0) {
    shards.data = c.grid.data;
    shards.data_follows = true;
  }
}

void check_together(const Config& c, const Origin& origin) {
  const Complaints complain{origin};
  const std::string open = auto_without_tokenizer(c);
  complain.require(open.empty(), open,
                   "is auto, and data.tokenizer names no tokenizer (name one, or a number)");
  complain.require(c.data.tokenizer_hash.empty() || !c.data.tokenizer.empty(), "data.tokenizer_hash",
                   "is set, and data.tokenizer names no tokenizer (name it, or leave the hash out)");
  rules_of(c.model).check(c, complain);
  check_grid(c, complain);
  check_shards(c, complain);
  check_batch(c, complain);
  check_rate(c, complain);
  check_energy(c, complain);
  check_guard(c, complain);
  check_repartition(c, complain);
  check_memory(c, complain);
  complain.require(!c.run.resume.empty(), "run.resume",
                   "is empty (auto, never, or the directory of a checkpoint)");
  complain.require(
      !c.run.new_head || !c.run.weights.empty(), "run.new_head",
      "is true and run.weights names no weights whose head it could leave out (name them; without "
      "them the whole model is drawn)");
  complain.require(c.train.evaluate_every == 0 || !c.data.validation.empty(), "train.evaluate_every",
                   "is {}, but data.validation names nothing to evaluate on", c.train.evaluate_every);
  complain.require(c.device.kernels.empty() || c.device.kind == DeviceKind::cuda, "device.kernels",
                   "names algorithms for a GPU, but device.kind is not cuda");
  complain.require(
      c.device.reserved_multiprocessors == 0 || c.device.kind == DeviceKind::cuda,
      "device.reserved_multiprocessors",
      "is {}, but device.kind is {}, which has no multiprocessors to leave to messages (leave it out)",
      c.device.reserved_multiprocessors, c.device.kind);
  complain.require(
      c.device.reserved_multiprocessors == 0 || c.device.transport != TransportKind::mpi,
      "device.reserved_multiprocessors",
      "is {}, but device.transport is mpi, whose messages need no multiprocessors (leave one of them out)",
      c.device.reserved_multiprocessors);
  complain.require(c.device.transport != TransportKind::nccl || c.device.kind == DeviceKind::cuda,
                   "device.transport",
                   "is nccl, which carries messages between GPUs, but device.kind is not cuda");
  complain.require(c.device.kind != DeviceKind::emulated || !c.device.description.empty(), "device.kind",
                   "is emulated, but device.description names no device to imitate");
}

Config resolve(Config config) {
  fill_in(config);
  check_together(config, [](const std::string&) { return std::string("configuration"); });
  return config;
}

}  // namespace mindpipe
