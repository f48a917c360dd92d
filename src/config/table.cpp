#include "config/settings.h"

namespace mindpipe {

std::vector<Setting> settings_of(Config& c) {  // table
  using Unit = Setting::Unit;
  constexpr double many = 1 << 30;
  const auto as = [](Setting::Role role) {
    return [role](const char* key, auto& member, std::string meaning) {
      return Setting(key, &member, std::move(meaning)).playing(role);
    };
  };
  const auto layout = as(Setting::Role::layout), course = as(Setting::Role::course),
             arithmetic = as(Setting::Role::arithmetic);
  return {
      arithmetic("seed", c.seed, "every random number of the run is a function of it"),

      layout("run.dir", c.run.dir, "the run directory; everything the run writes is below it").required(),
      layout("run.resume", c.run.resume,
             "auto: go on from the newest whole checkpoint in run.dir; never: begin; or the directory of a "
             "checkpoint to go on from"),
      layout("run.max_walltime", c.run.max_walltime,
             "stop cleanly, with a checkpoint, and exit 75 after this long (23h50m); 0: no limit")
          .from(0)
          .to(1e9)
          .in(Unit::seconds),

      arithmetic("model.kind", c.model.kind, "the model's name in the registry"),
      arithmetic("model.layers", c.model.layers, "Transformer layers").from(1).to(100000),
      arithmetic("model.width", c.model.width, "numbers per token between layers").from(1).to(1 << 20),
      arithmetic("model.heads", c.model.heads, "attention heads; divides width").from(1).to(1 << 16),
      arithmetic("model.key_value_heads", c.model.key_value_heads,
                 "heads of keys and values, divides heads; auto: as many as heads")
          .from(1)
          .to(1 << 16)
          .or_auto(),
      arithmetic("model.mlp_width", c.model.mlp_width,
                 "inner width of the MLP; auto: 4 width (gelu), 8/3 width rounded up to 64 (swiglu)")
          .from(1)
          .to(1 << 22)
          .or_auto(),
      arithmetic("model.context", c.model.context, "the longest sequence").from(1).to(1 << 24),
      arithmetic("model.vocabulary", c.model.vocabulary, "distinct tokens; the tokenizer's size")
          .from(1)
          .to(1 << 24),
      arithmetic("model.positions", c.model.positions, "how tokens know where they stand"),
      arithmetic("model.rotary_base", c.model.rotary_base, "base of the rotary angles").from(1).to(1e12),
      arithmetic("model.norm", c.model.norm, "LayerNorm or RMSNorm"),
      arithmetic("model.norm_epsilon", c.model.norm_epsilon, "added to the variance").above(0).to(1),
      arithmetic("model.mlp", c.model.mlp, "the MLP's activation"),
      arithmetic("model.bias", c.model.bias, "biases in products and norms"),
      arithmetic("model.tied", c.model.tied, "embedding and head share their table"),
      arithmetic("model.dropout", c.model.dropout,
                 "probability that an element of a residual branch is dropped")
          .from(0)
          .below(1),
      arithmetic("model.attention_dropout", c.model.attention_dropout,
                 "probability that an attention weight is dropped")
          .from(0)
          .below(1),
      arithmetic("model.initial_deviation", c.model.initial_deviation,
                 "standard deviation of the first weights")
          .above(0)
          .to(100),

      arithmetic("data.train", c.data.train, "what to train on").required(),
      course("data.validation", c.data.validation, "what to evaluate on"),
      arithmetic("data.sequence", c.data.sequence,
                 "tokens per sample, at most model.context; auto: model.context")
          .from(1)
          .to(1 << 24)
          .or_auto(),

      layout("grid.supernet", c.grid.supernet,
             "lanes that train different subnets; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      layout("grid.pipeline", c.grid.pipeline, "pipeline stages; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      layout("grid.data", c.grid.data,
             "data-parallel replicas, a divisor of reproducible.data; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      layout("grid.tensor", c.grid.tensor,
             "ranks that share each product, a divisor of reproducible.tensor; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),

      layout("schedule.kind", c.schedule.kind, "the order of forwards and backwards in the pipeline"),
      layout("schedule.chunks", c.schedule.chunks,
             "pieces of the model on each stage (" +
                 names_with<ScheduleKind>(&ScheduleRow::has_chunks, ", ") + ")")
          .from(1)
          .to(1024),
      layout("schedule.cuts", c.schedule.cuts, "first block of each stage but the first; empty: balanced")
          .from(1)
          .to(many),

      arithmetic("reproducible.tensor", c.reproducible.tensor,
                 "logical shards of each product, fixed for the life of a run; auto: grid.tensor")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      arithmetic("reproducible.data", c.reproducible.data,
                 "logical shards of the batch, fixed for the life of a run; auto: grid.data")
          .from(1)
          .to(1 << 20)
          .or_auto(),

      course("train.steps", c.train.steps, "steps of the whole run").from(0).to(many),
      arithmetic("train.batch", c.train.batch, "samples per step over all replicas").from(1).to(many),
      arithmetic(
          "train.micro_batch", c.train.micro_batch,
          "samples that pass through the model at once; with another number, other (equally good) bits")
          .from(1)
          .to(many),
      arithmetic("train.precision", c.train.precision,
                 "type of activations and of the weights that compute; masters are f32"),
      layout("train.recompute", c.train.recompute,
             "block computes each block's forward again in the backward, to save memory"),
      layout("train.sequence_parallel", c.train.sequence_parallel,
             "tensor ranks share the sequence between products"),
      layout("train.zero", c.train.zero,
             "shard over data: 0 nothing, 1 optimizer state, 2 gradients too: whole ones live until they are "
             "summed")
          .from(0)
          .to(2),
      course("train.clip", c.train.clip, "largest global norm of the gradient; 0: no clipping")
          .from(0)
          .to(1e30),
      arithmetic("train.label_smoothing", c.train.label_smoothing, "probability spread over the other tokens")
          .from(0)
          .below(1),
      course("train.evaluate_every", c.train.evaluate_every,
             "steps between evaluations on data.validation; 0: never")
          .from(0)
          .to(many),
      course("train.evaluate_batches", c.train.evaluate_batches, "batches of one evaluation")
          .from(1)
          .to(many),

      arithmetic("optimizer.kind", c.optimizer.kind, "the rule of the update"),
      course("optimizer.rate.kind", c.optimizer.rate.kind,
             "the course of the learning rate after the warm-up"),
      course("optimizer.rate.peak", c.optimizer.rate.peak, "the highest learning rate").from(0).to(1e6),
      course("optimizer.rate.floor", c.optimizer.rate.floor, "the learning rate at the end; at most peak")
          .from(0)
          .to(1e6),
      course("optimizer.rate.warmup", c.optimizer.rate.warmup, "steps from rate 0 to peak").from(0).to(many),
      course("optimizer.rate.decay", c.optimizer.rate.decay,
             "step that reaches the floor, auto: train.steps; wsd: length of the last part, auto: a tenth of "
             "the steps")
          .from(1)
          .to(many)
          .or_auto(),
      arithmetic("optimizer.beta1", c.optimizer.beta1, "AdamW: memory of the mean").from(0).below(1),
      arithmetic("optimizer.beta2", c.optimizer.beta2, "AdamW: memory of the mean square").from(0).below(1),
      arithmetic("optimizer.epsilon", c.optimizer.epsilon, "AdamW: added to the root of the mean square")
          .above(0)
          .to(1),
      course(
          "optimizer.weight_decay", c.optimizer.weight_decay,
          "decay of matrices (AdamW: apart from the gradient, SGD: with it); norms and biases do not decay")
          .from(0)
          .to(1e3),
      arithmetic("optimizer.momentum", c.optimizer.momentum, "SGD: memory of the gradient").from(0).below(1),
      arithmetic("optimizer.nesterov", c.optimizer.nesterov, "SGD: look ahead"),

      layout("memory.device_limit", c.memory.device_limit, "memory of a rank (12 GiB); 0: no limit")
          .from(0)
          .in(Unit::bytes),

      layout("checkpoint.every", c.checkpoint.every,
             "steps between checkpoints; 0: only when the run stops and at its end")
          .from(0)
          .to(many),
      layout("checkpoint.every_time", c.checkpoint.every_time,
             "time between checkpoints (30m), also between those of checkpoint.every; 0: no limit")
          .from(0)
          .to(1e9)
          .in(Unit::seconds),
      layout("checkpoint.keep", c.checkpoint.keep, "newest checkpoints that stay").from(2).to(many),
      layout("checkpoint.keep_every", c.checkpoint.keep_every,
             "checkpoints of each so many steps stay for good, as does the best by validation loss; 0: none")
          .from(0)
          .to(many),
      layout("checkpoint.background", c.checkpoint.background,
             "auto: train on while a copy of the state is written, where memory has room for it; no: wait"),
      layout("checkpoint.writer", c.checkpoint.writer,
             "direct: each rank writes its part of the file; mpiio: through HDF5's MPI-IO driver, while "
             "training waits"),
      layout("checkpoint.on_error", c.checkpoint.on_error,
             "when a checkpoint cannot be written: stop with exit code 74, or warn and train on"),

      layout("device.kind", c.device.kind, "what computes"),
      layout("device.threads", c.device.threads,
             "threads of a rank; 0: as many processors as it may use; on the cpu at most 16 on each of them")
          .from(0)
          .to(4096),
      layout("device.instructions", c.device.instructions,
             "instruction set of the kernels, on all ranks alike; auto: the best of this processor")
          .one_of({"auto", "avx512+amx", "avx512+bf16", "avx512", "avx2", "baseline"}),
      layout(
          "device.description", c.device.description,
          "the device to imitate (emulated) or to price plans for (h200, a100, core); empty: core for cpu, "
          "h200 for cuda"),
      layout("device.links.ranks_per_node", c.device.links.ranks_per_node,
             "ranks of a node that messages are priced for; 0: as device.description")
          .from(0)
          .to(1 << 20),
      layout("device.links.latency", c.device.links.latency,
             "of a message within a node (2e-6); 0: as device.description")
          .from(0)
          .to(1),
      layout("device.links.rate", c.device.links.rate,
             "bytes a second of a rank within a node (10e9); 0: as device.description")
          .from(0)
          .to(1e18),
      layout("device.links.latency_between_nodes", c.device.links.latency_between_nodes,
             "the same between nodes")
          .from(0)
          .to(1),
      layout("device.links.rate_between_nodes", c.device.links.rate_between_nodes, "the same between nodes")
          .from(0)
          .to(1e18),
      layout(
          "device.transport", c.device.transport,
          "cuda: what carries messages between ranks; auto: NCCL where each rank has a GPU of its own, else "
          "MPI through pinned memory"),
      layout("device.kernels", c.device.kernels,
             "cuda: a file of doctor --tune that names the fastest algorithms; an input: with another file, "
             "other bits"),

      layout("watchdog.start", c.watchdog.start, "longest start-up before the job is given up (300 s)")
          .above(0)
          .to(1e9)
          .in(Unit::seconds),
      layout(
          "watchdog.step", c.watchdog.step,
          "longest step before the job is given up; 0: ten median steps (the first: thirty times its price "
          "on paper), at least 300 s")
          .from(0)
          .to(1e9)
          .in(Unit::seconds),

      layout(
          "trace.steps", c.trace.steps,
          "last steps of a training whose actions go to trace.json in run.dir (Perfetto opens it); 0: none")
          .from(0)
          .to(1000),

      layout("generate.prompt", c.generate.prompt, "text to go on from"),
      layout("generate.tokens", c.generate.tokens, "tokens to write").from(1).to(many),
      layout("generate.temperature", c.generate.temperature, "0: always the likeliest token").from(0).to(1e3),
      layout("generate.top_k", c.generate.top_k, "choose among this many likeliest tokens; 0: all")
          .from(0)
          .to(1 << 24),
      layout("generate.top_p", c.generate.top_p, "choose among the likeliest tokens that hold this share")
          .above(0)
          .to(1),
  };
}

}  // namespace mindpipe
