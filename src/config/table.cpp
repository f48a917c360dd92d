#include "config/settings.h"

namespace mindpipe {

std::vector<Setting> settings_of(Config& c) {  // table
  using Unit = Setting::Unit;
  constexpr double many = 1 << 30;
  const auto set = [](const char* key, auto& member, std::string meaning) {
    return Setting(key, &member, std::move(meaning));
  };
  return {
      set("seed", c.seed, "every random number of the run is a function of it"),

      set("run.dir", c.run.dir, "the run directory; everything the run writes is below it").required(),
      set("run.resume", c.run.resume,
          "auto will go on from a checkpoint in run.dir; none is written yet, so every run starts anew"),
      set("run.max_walltime", c.run.max_walltime,
          "stop cleanly, with the weights saved, and exit 75 after this long (23h50m); 0: no limit")
          .from(0)
          .to(1e9)
          .in(Unit::seconds),

      set("model.kind", c.model.kind, "the model's name in the registry"),
      set("model.layers", c.model.layers, "Transformer layers").from(1).to(100000),
      set("model.width", c.model.width, "numbers per token between layers").from(1).to(1 << 20),
      set("model.heads", c.model.heads, "attention heads; divides width").from(1).to(1 << 16),
      set("model.key_value_heads", c.model.key_value_heads,
          "heads of keys and values, divides heads; auto: as many as heads")
          .from(1)
          .to(1 << 16)
          .or_auto(),
      set("model.mlp_width", c.model.mlp_width,
          "inner width of the MLP; auto: 4 width (gelu), 8/3 width rounded up to 64 (swiglu)")
          .from(1)
          .to(1 << 22)
          .or_auto(),
      set("model.context", c.model.context, "the longest sequence").from(1).to(1 << 24),
      set("model.vocabulary", c.model.vocabulary, "distinct tokens; the tokenizer's size")
          .from(1)
          .to(1 << 24),
      set("model.positions", c.model.positions, "how tokens know where they stand"),
      set("model.rotary_base", c.model.rotary_base, "base of the rotary angles").from(1).to(1e12),
      set("model.norm", c.model.norm, "LayerNorm or RMSNorm"),
      set("model.norm_epsilon", c.model.norm_epsilon, "added to the variance").above(0).to(1),
      set("model.mlp", c.model.mlp, "the MLP's activation"),
      set("model.bias", c.model.bias, "biases in products and norms"),
      set("model.tied", c.model.tied, "embedding and head share their table"),
      set("model.dropout", c.model.dropout, "probability that an element of a residual branch is dropped")
          .from(0)
          .below(1),
      set("model.attention_dropout", c.model.attention_dropout,
          "probability that an attention weight is dropped")
          .from(0)
          .below(1),
      set("model.initial_deviation", c.model.initial_deviation, "standard deviation of the first weights")
          .above(0)
          .to(100),

      set("data.train", c.data.train, "what to train on").required(),
      set("data.validation", c.data.validation, "what to evaluate on"),
      set("data.sequence", c.data.sequence, "tokens per sample, at most model.context; auto: model.context")
          .from(1)
          .to(1 << 24)
          .or_auto(),

      set("grid.supernet", c.grid.supernet, "lanes that train different subnets; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      set("grid.pipeline", c.grid.pipeline, "pipeline stages; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      set("grid.data", c.grid.data,
          "data-parallel replicas, a divisor of reproducible.data; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      set("grid.tensor", c.grid.tensor,
          "ranks that share each product, a divisor of reproducible.tensor; auto: the rest of the ranks")
          .from(1)
          .to(1 << 20)
          .or_auto(),

      set("schedule.kind", c.schedule.kind, "the order of forwards and backwards in the pipeline"),
      set("schedule.chunks", c.schedule.chunks,
          "pieces of the model on each stage (" + names_with<ScheduleKind>(&ScheduleRow::has_chunks, ", ") +
              ")")
          .from(1)
          .to(1024),
      set("schedule.cuts", c.schedule.cuts, "first block of each stage but the first; empty: balanced")
          .from(1)
          .to(many),

      set("reproducible.tensor", c.reproducible.tensor,
          "logical shards of each product, fixed for the life of a run; auto: grid.tensor")
          .from(1)
          .to(1 << 20)
          .or_auto(),
      set("reproducible.data", c.reproducible.data,
          "logical shards of the batch, fixed for the life of a run; auto: grid.data")
          .from(1)
          .to(1 << 20)
          .or_auto(),

      set("train.steps", c.train.steps, "steps of the whole run").from(0).to(many),
      set("train.batch", c.train.batch, "samples per step over all replicas").from(1).to(many),
      set("train.micro_batch", c.train.micro_batch,
          "samples that pass through the model at once; with another number, other (equally good) bits")
          .from(1)
          .to(many),
      set("train.precision", c.train.precision,
          "type of activations and of the weights that compute; masters are f32"),
      set("train.recompute", c.train.recompute,
          "block computes each block's forward again in the backward, to save memory"),
      set("train.sequence_parallel", c.train.sequence_parallel,
          "tensor ranks share the sequence between products"),
      set("train.zero", c.train.zero,
          "shard over data: 0 nothing, 1 optimizer state, 2 gradients too: whole ones live until they are "
          "summed")
          .from(0)
          .to(2),
      set("train.clip", c.train.clip, "largest global norm of the gradient; 0: no clipping").from(0).to(1e30),
      set("train.label_smoothing", c.train.label_smoothing, "probability spread over the other tokens")
          .from(0)
          .below(1),
      set("train.evaluate_every", c.train.evaluate_every,
          "steps between evaluations on data.validation; 0: never")
          .from(0)
          .to(many),
      set("train.evaluate_batches", c.train.evaluate_batches, "batches of one evaluation").from(1).to(many),

      set("optimizer.kind", c.optimizer.kind, "the rule of the update"),
      set("optimizer.rate.kind", c.optimizer.rate.kind, "the course of the learning rate after the warm-up"),
      set("optimizer.rate.peak", c.optimizer.rate.peak, "the highest learning rate").from(0).to(1e6),
      set("optimizer.rate.floor", c.optimizer.rate.floor, "the learning rate at the end; at most peak")
          .from(0)
          .to(1e6),
      set("optimizer.rate.warmup", c.optimizer.rate.warmup, "steps from rate 0 to peak").from(0).to(many),
      set("optimizer.rate.decay", c.optimizer.rate.decay,
          "step that reaches the floor, auto: train.steps; wsd: length of the last part, auto: a tenth of "
          "the steps")
          .from(1)
          .to(many)
          .or_auto(),
      set("optimizer.beta1", c.optimizer.beta1, "AdamW: memory of the mean").from(0).below(1),
      set("optimizer.beta2", c.optimizer.beta2, "AdamW: memory of the mean square").from(0).below(1),
      set("optimizer.epsilon", c.optimizer.epsilon, "AdamW: added to the root of the mean square")
          .above(0)
          .to(1),
      set("optimizer.weight_decay", c.optimizer.weight_decay,
          "decay of matrices (AdamW: apart from the gradient, SGD: with it); norms and biases do not decay")
          .from(0)
          .to(1e3),
      set("optimizer.momentum", c.optimizer.momentum, "SGD: memory of the gradient").from(0).below(1),
      set("optimizer.nesterov", c.optimizer.nesterov, "SGD: look ahead"),

      set("memory.device_limit", c.memory.device_limit, "memory of a rank (12 GiB); 0: no limit")
          .from(0)
          .in(Unit::bytes),

      set("checkpoint.every", c.checkpoint.every,
          "steps between checkpoints; none is written yet, so a run says so when this is not 0")
          .from(0)
          .to(many),
      set("checkpoint.keep", c.checkpoint.keep, "newest checkpoints that stay").from(2).to(many),

      set("device.kind", c.device.kind, "what computes"),
      set("device.threads", c.device.threads,
          "threads of a rank; 0: as many processors as it may use; on the cpu at most 16 on each of them")
          .from(0)
          .to(4096),
      set("device.instructions", c.device.instructions,
          "instruction set of the kernels, on all ranks alike; auto: the best of this processor")
          .one_of({"auto", "avx512+amx", "avx512+bf16", "avx512", "avx2", "baseline"}),
      set("device.description", c.device.description,
          "the device to imitate (emulated) or to price plans for (h200, a100, core); empty: core for cpu, "
          "h200 for cuda"),
      set("device.links.ranks_per_node", c.device.links.ranks_per_node,
          "ranks of a node that messages are priced for; 0: as device.description")
          .from(0)
          .to(1 << 20),
      set("device.links.latency", c.device.links.latency,
          "of a message within a node (2e-6); 0: as device.description")
          .from(0)
          .to(1),
      set("device.links.rate", c.device.links.rate,
          "bytes a second of a rank within a node (10e9); 0: as device.description")
          .from(0)
          .to(1e18),
      set("device.links.latency_between_nodes", c.device.links.latency_between_nodes,
          "the same between nodes")
          .from(0)
          .to(1),
      set("device.links.rate_between_nodes", c.device.links.rate_between_nodes, "the same between nodes")
          .from(0)
          .to(1e18),
      set("device.transport", c.device.transport,
          "cuda: what carries messages between ranks; auto: NCCL where each rank has a GPU of its own, else "
          "MPI through pinned memory"),
      set("device.kernels", c.device.kernels,
          "cuda: a file of doctor --tune that names the fastest algorithms; an input: with another file, "
          "other bits"),

      set("watchdog.start", c.watchdog.start, "longest start-up before the job is given up (300 s)")
          .above(0)
          .to(1e9)
          .in(Unit::seconds),
      set("watchdog.step", c.watchdog.step,
          "longest step before the job is given up; 0: ten median steps (the first: thirty times its price "
          "on paper), at least 300 s")
          .from(0)
          .to(1e9)
          .in(Unit::seconds),

      set("trace.steps", c.trace.steps,
          "last steps of a training whose actions go to trace.json in run.dir (Perfetto opens it); 0: none")
          .from(0)
          .to(1000),

      set("generate.prompt", c.generate.prompt, "text to go on from"),
      set("generate.tokens", c.generate.tokens, "tokens to write").from(1).to(many),
      set("generate.temperature", c.generate.temperature, "0: always the likeliest token").from(0).to(1e3),
      set("generate.top_k", c.generate.top_k, "choose among this many likeliest tokens; 0: all")
          .from(0)
          .to(1 << 24),
      set("generate.top_p", c.generate.top_p, "choose among the likeliest tokens that hold this share")
          .above(0)
          .to(1),
  };
}

}  // namespace mindpipe
