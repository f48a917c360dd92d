#include <gtest/gtest.h>

#include <map>
#include <set>

#include "config/config.h"
#include "config/settings.h"

// What becomes of each setting when a run goes on from a checkpoint: a table of its own, so that a new
// setting is thought about twice.
namespace mindpipe {
namespace {

/// Who computes what, where, and what is left beside it: free.
const std::set<std::string> layout{
    "run.dir",
    "run.resume",
    "run.weights",
    "run.new_head",
    "run.max_walltime",
    "run.stop_after",
    "run.log_every",
    "data.tokenizer",
    "data.template",
    "grid.supernet",
    "grid.pipeline",
    "grid.data",
    "grid.tensor",
    "schedule.kind",
    "supernet.admission",
    "supernet.slots",
    "supernet.cuts",
    "supernet.prices",
    "search.dir",
    "search.searcher",
    "search.scores",
    "search.batches",
    "search.lag",
    "search.population",
    "search.parents",
    "search.mutation",
    "search.objectives",
    "search.limits.parameters",
    "search.limits.operations",
    "search.limits.latency",
    "search.limits.bytes",
    "search.best",
    "search.steps",
    "search.verify",
    "search.halving",
    "schedule.chunks",
    "schedule.cuts",
    "schedule.groups.forward",
    "schedule.groups.backward",
    "schedule.memory",
    "train.recompute",
    "train.swap",
    "train.sequence_parallel",
    "train.zero",
    "train.noise_every",
    "train.norms_every",
    "guard.replicas_every",
    "memory.device_limit",
    "memory.host_limit",
    "memory.optimizer",
    "repartition.at",
    "repartition.every",
    "repartition.room",
    "checkpoint.every",
    "checkpoint.every_time",
    "checkpoint.keep",
    "checkpoint.keep_every",
    "checkpoint.background",
    "checkpoint.writer",
    "checkpoint.on_error",
    "export.part",
    "export.precision",
    "export.names",
    "device.kind",
    "device.threads",
    "device.instructions",
    "device.description",
    "device.profile",
    "device.links.ranks_per_node",
    "device.links.latency",
    "device.links.rate",
    "device.links.latency_between_nodes",
    "device.links.rate_between_nodes",
    "device.links.copies",
    "device.transport",
    "device.kernels",
    "device.attention_workspace",
    "device.attention_beyond",
    "device.reserved_multiprocessors",
    "watchdog.start",
    "watchdog.step",
    "trace.steps",
    "energy.meter",
    "energy.powercap",
    "energy.cap",
    "energy.carbon_intensity",
    "energy.source",
    "energy.pue",
    "energy.forecast",
    "energy.duration",
    "energy.deadline",
    "plan.objective",
    "plan.batches",
    "plan.noise_scale",
    "plan.rank_hour",
    "plan.kwh",
    "plan.co2_kg",
    "generate.prompt",
    "generate.tokens",
    "generate.temperature",
    "generate.top_k",
    "generate.top_p",
};

/// How the run goes on from there: the new value is taken.
const std::set<std::string> course{
    "guard.skips",
    "guard.spike",
    "guard.rollbacks",
    "supernet.calibrate_batches",
    "supernet.evaluate_subnets",
    "data.validation",
    "train.steps",
    "train.clip",
    "train.evaluate_every",
    "train.evaluate_batches",
    "optimizer.rate.kind",
    "optimizer.rate.peak",
    "optimizer.rate.floor",
    "optimizer.rate.warmup",
    "optimizer.rate.decay",
    "optimizer.rate.drops",
    "optimizer.rate.drop_factor",
    "optimizer.weight_decay",
};

/// What every number depends on, those of the steps before, too: it stays.
const std::set<std::string> arithmetic{
    "seed",
    "model.kind",
    "model.layers",
    "model.width",
    "model.heads",
    "model.key_value_heads",
    "model.mlp_width",
    "model.context",
    "model.vocabulary",
    "model.positions",
    "model.rotary_base",
    "model.rotary_scaling",
    "model.logits_bias",
    "model.rotary_factor",
    "model.rotary_low",
    "model.rotary_high",
    "model.rotary_context",
    "model.head_width",
    "model.qkv_bias",
    "model.qk_norm",
    "model.norm",
    "model.norm_epsilon",
    "model.mlp",
    "model.bias",
    "model.tied",
    "model.dropout",
    "model.attention_dropout",
    "model.initial_deviation",
    "data.train",
    "data.sequence",
    "data.source_sequence",
    "data.target_sequence",
    "data.masked",
    "data.tokenizer_hash",
    "data.special.end",
    "data.special.start",
    "data.special.padding",
    "data.special.mask",
    "data.flip",
    "data.crop",
    "model.decoder_layers",
    "model.order",
    "model.first_position",
    "model.tables",
    "model.scaled",
    "model.types",
    "model.channels",
    "model.picture_height",
    "model.picture_width",
    "model.patch",
    "model.depth",
    "model.norm_momentum",
    "model.classes",
    "model.mean",
    "model.deviation",
    "model.space",
    "model.choice",
    "supernet.sampler",
    "supernet.spacing",
    "supernet.window",
    "reproducible.tensor",
    "reproducible.data",
    "train.batch",
    "train.micro_batch",
    "train.precision",
    "train.label_smoothing",
    "optimizer.kind",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.epsilon",
    "optimizer.momentum",
    "optimizer.nesterov",
};

TEST(Roles, EverySettingHasTheOneThatIsWrittenHere) {
  std::map<std::string, Setting::Role> roles;
  for (const std::string& key : layout) roles[key] = Setting::Role::layout;
  for (const std::string& key : course) roles[key] = Setting::Role::course;
  for (const std::string& key : arithmetic) roles[key] = Setting::Role::arithmetic;
  EXPECT_EQ(roles.size(), layout.size() + course.size() + arithmetic.size()) << "a setting has two roles";

  std::set<std::string> seen;
  for (const ModelKind kind : all_kinds<ModelKind>()) {
    Config config;
    config.model.kind = kind;
    for (const Setting& setting : settings_of(config)) {
      const auto known = roles.find(setting.key());
      ASSERT_NE(known, roles.end()) << setting.key()
                                    << " is new: say here what becomes of it when a run goes on";
      const bool decides_bits = setting.key() == "schedule.kind" && kind == ModelKind::supernet;
      EXPECT_EQ(setting.role(), decides_bits ? Setting::Role::arithmetic : known->second) << setting.key();
      seen.insert(setting.key());
    }
  }
  for (const std::string& key : seen) roles.erase(key);
  for (const auto& [key, role] : roles) ADD_FAILURE() << key << " is no setting (any more)";
}

}  // namespace
}  // namespace mindpipe
