#include "config/rules.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

/// "a.yaml:3: model.heads is 5 ..." for the first key of a sentence.
struct Complaints {
  const Origin& origin;

  template <class... Parts>
  void require(bool holds, const std::string& key, fmt::format_string<Parts...> sentence,
               Parts&&... parts) const {
    MP_REQUIRE(holds, Exit::bad_configuration, "{}: {} {}", origin(key), key,
               fmt::format(sentence, std::forward<Parts>(parts)...));
  }
};

void check_model(const ModelConfig& m, const Complaints& complain) {
  complain.require(m.width % m.heads == 0, "model.heads",
                   "is {} and model.width {} (heads divide the width; the nearest width is {})", m.heads,
                   m.width, std::max(1, (m.width + m.heads / 2) / m.heads) * m.heads);
  complain.require(m.heads % m.key_value_heads == 0, "model.key_value_heads",
                   "is {} and model.heads {} (heads share keys and values in equal groups)",
                   m.key_value_heads, m.heads);
  complain.require(
      m.positions != Positions::rotary || m.width / m.heads % 2 == 0, "model.positions",
      "is rotary and a head is {} wide (rotation works on pairs; make model.width / model.heads even)",
      m.width / m.heads);
}

/// A translator is built one way in these; what it would not read is refused rather than passed over.
void check_translator(const ModelConfig& m, const Complaints& complain) {
  if (m.kind != ModelKind::translator) return;
  const auto leave_out = [&](bool as_built, const char* key, std::string_view value, const char* what) {
    complain.require(as_built, key, "is {}, but a translator has {} (leave it out)", value, what);
  };
  leave_out(m.key_value_heads == m.heads, "model.key_value_heads", std::to_string(m.key_value_heads),
            "as many as model.heads");
  leave_out(m.positions == Positions::learned, "model.positions", name_of(m.positions), "learned positions");
  leave_out(m.rotary_base == ModelConfig{}.rotary_base, "model.rotary_base", shortest(m.rotary_base),
            "learned positions");
  leave_out(m.tied, "model.tied", "false", "one table for source, target and head");
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
    const int common = std::gcd(std::gcd(c.model.heads, c.model.key_value_heads),
                                std::gcd(c.model.mlp_width, c.data.sequence));
    const auto divides = [&](int extent, const char* name) {
      complain.require(extent % shards == 0,
                       c.reproducible.tensor_follows ? "grid.tensor" : "reproducible.tensor",
                       "is {} and {} {} (every logical shard gets an equal part; the nearest that divides "
                       "heads, mlp_width and sequence is {})",
                       shards, name, extent, divisors_near(common, shards));
    };
    divides(c.model.heads, "model.heads");
    divides(c.model.key_value_heads, "model.key_value_heads");
    divides(c.model.mlp_width, "model.mlp_width");
    divides(c.data.sequence, "data.sequence");
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
}

void check_grid(const Config& c, const Complaints& complain) {
  std::vector<std::string> automatic;
  if (c.grid.supernet == 0) automatic.push_back("grid.supernet");
  if (c.grid.pipeline == 0) automatic.push_back("grid.pipeline");
  if (c.grid.data == 0) automatic.push_back("grid.data");
  if (c.grid.tensor == 0) automatic.push_back("grid.tensor");
  if (automatic.size() > 1)
    complain.require(false, automatic[1],
                     "is auto, and {} too (at most one degree can be the rest of the ranks)", automatic[0]);

  const ScheduleConfig& s = c.schedule;
  complain.require(row_of(s.kind).has_chunks || s.chunks == 1, "schedule.chunks",
                   "is {} and schedule.kind {} (only {} cut stages into chunks)", s.chunks, s.kind,
                   names_with<ScheduleKind>(&ScheduleRow::has_chunks, " and "));
  complain.require(std::is_sorted(s.cuts.begin(), s.cuts.end(), std::less_equal<>()), "schedule.cuts",
                   "is [{}] (each cut lies behind the one before)", joined(s.cuts));
  if (!s.cuts.empty() && c.grid.pipeline > 0)
    complain.require(static_cast<int>(s.cuts.size()) == c.grid.pipeline * s.chunks - 1, "schedule.cuts",
                     "names {} cuts, but {} stages of {} chunks have {}", s.cuts.size(), c.grid.pipeline,
                     s.chunks, c.grid.pipeline * s.chunks - 1);
}

}  // namespace

void fill_in(Config& c) {
  ModelConfig& m = c.model;
  if (m.key_value_heads == 0) m.key_value_heads = m.heads;
  if (m.mlp_width == 0)
    m.mlp_width = m.mlp == MlpKind::swiglu
                      ? static_cast<int>((std::int64_t{m.width} * 8 + 3 * 64 - 1) / (3 * 64) * 64)
                      : 4 * m.width;
  if (c.data.sequence == 0) c.data.sequence = m.context;
  RateConfig& rate = c.optimizer.rate;
  if (rate.decay == 0)
    rate.decay = std::max(1, rate.kind == RateKind::wsd ? c.train.steps / 10 : c.train.steps);
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
  check_model(c.model, complain);
  check_translator(c.model, complain);
  complain.require(c.data.sequence <= c.model.context, "data.sequence",
                   "is {} and model.context {} (a sample fits the context)", c.data.sequence,
                   c.model.context);
  check_grid(c, complain);
  check_shards(c, complain);
  check_batch(c, complain);
  check_rate(c, complain);
  complain.require(!c.run.resume.empty(), "run.resume",
                   "is empty (auto, never, or the directory of a checkpoint)");
  complain.require(c.train.evaluate_every == 0 || !c.data.validation.empty(), "train.evaluate_every",
                   "is {}, but data.validation names nothing to evaluate on", c.train.evaluate_every);
  complain.require(c.device.kernels.empty() || c.device.kind == DeviceKind::cuda, "device.kernels",
                   "names algorithms for a GPU, but device.kind is not cuda");
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
