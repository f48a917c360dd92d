#include "config/settings.h"

namespace mindpipe {

/// A setting by the member that holds it, whose path is its key; then its meaning and its range.
#define SETTING(member, ...) Setting(#member, &c.member, __VA_ARGS__)

std::vector<Setting> settings_of(Config& c) {  // table
  using Unit = Setting::Unit;
  constexpr double many = 1 << 30;
  constexpr Range count{1, many}, any_count{0, many}, share{0, 1, false, true};
  const auto above_0 = [](double most) { return Range{0, most, true}; };
  const auto or_auto = [](double most) { return Range{1, most, false, false, true}; };
  const Range degree = or_auto(1 << 20);
  return {
      SETTING(seed, "every random number of the run is a function of it"),

      SETTING(run.dir, "the run directory; everything the run writes is below it").required(),
      SETTING(run.resume,
              "auto will go on from a checkpoint in run.dir; none is written yet, so every run starts anew"),
      SETTING(run.max_walltime,
              "stop cleanly, with the weights saved, and exit 75 after this long (23h50m); 0: no limit",
              Range{0, 1e9})
          .in(Unit::seconds),

      SETTING(model.kind, "the model's name in the registry"),
      SETTING(model.layers, "Transformer layers", Range{1, 100000}),
      SETTING(model.width, "numbers per token between layers", Range{1, 1 << 20}),
      SETTING(model.heads, "attention heads; divides width", Range{1, 1 << 16}),
      SETTING(model.key_value_heads, "heads of keys and values, divides heads; auto: as many as heads",
              or_auto(1 << 16)),
      SETTING(model.mlp_width,
              "inner width of the MLP; auto: 4 width (gelu), 8/3 width rounded up to 64 (swiglu)",
              or_auto(1 << 22)),
      SETTING(model.context, "the longest sequence", Range{1, 1 << 24}),
      SETTING(model.vocabulary, "distinct tokens; the tokenizer's size", Range{1, 1 << 24}),
      SETTING(model.positions, "how tokens know where they stand"),
      SETTING(model.rotary_base, "base of the rotary angles", Range{1, 1e12}),
      SETTING(model.norm, "LayerNorm or RMSNorm"),
      SETTING(model.norm_epsilon, "added to the variance", above_0(1)),
      SETTING(model.mlp, "the MLP's activation"),
      SETTING(model.bias, "biases in products and norms"),
      SETTING(model.tied, "embedding and head share their table"),
      SETTING(model.dropout, "probability that an element of a residual branch is dropped", share),
      SETTING(model.attention_dropout, "probability that an attention weight is dropped", share),
      SETTING(model.initial_deviation, "standard deviation of the first weights", above_0(100)),

      SETTING(data.train, "what to train on").required(),
      SETTING(data.validation, "what to evaluate on"),
      SETTING(data.sequence, "tokens per sample, at most model.context; auto: model.context",
              or_auto(1 << 24)),

      SETTING(grid.supernet, "lanes that train different subnets; auto: the rest of the ranks", degree),
      SETTING(grid.pipeline, "pipeline stages; auto: the rest of the ranks", degree),
      SETTING(grid.data, "data-parallel replicas; auto: the rest of the ranks", degree),
      SETTING(grid.tensor, "ranks that share each product; auto: the rest of the ranks", degree),

      SETTING(schedule.kind, "the order of forwards and backwards in the pipeline"),
      SETTING(schedule.chunks,
              "pieces of the model on each stage (" +
                  names_with<ScheduleKind>(&ScheduleRow::has_chunks, ", ") + ")",
              Range{1, 1024}),
      SETTING(schedule.cuts, "first block of each stage but the first; empty: balanced", count),

      SETTING(reproducible.tensor,
              "logical shards of each product, fixed for the life of a run; auto: grid.tensor", degree),
      SETTING(reproducible.data, "logical shards of the batch, fixed for the life of a run; auto: grid.data",
              degree),

      SETTING(train.steps, "steps of the whole run", any_count),
      SETTING(train.batch, "samples per step over all replicas", count),
      SETTING(train.micro_batch,
              "samples that pass through the model at once; with another number, other (equally good) bits",
              count),
      SETTING(train.precision, "type of activations and of the weights that compute; masters are f32"),
      SETTING(train.recompute, "block computes each block's forward again in the backward, to save memory"),
      SETTING(train.sequence_parallel, "tensor ranks share the sequence between products"),
      SETTING(train.zero,
              "shard over data: 0 nothing, 1 optimizer state, 2 gradients too: whole ones live until they "
              "are summed",
              Range{0, 2}),
      SETTING(train.clip, "largest global norm of the gradient; 0: no clipping", Range{0, 1e30}),
      SETTING(train.label_smoothing, "probability spread over the other tokens", share),
      SETTING(train.evaluate_every, "steps between evaluations on data.validation; 0: never", any_count),
      SETTING(train.evaluate_batches, "batches of one evaluation", count),

      SETTING(optimizer.kind, "the rule of the update"),
      SETTING(optimizer.rate.kind, "the course of the learning rate after the warm-up"),
      SETTING(optimizer.rate.peak, "the highest learning rate", Range{0, 1e6}),
      SETTING(optimizer.rate.floor, "the learning rate at the end; at most peak", Range{0, 1e6}),
      SETTING(optimizer.rate.warmup, "steps from rate 0 to peak", any_count),
      SETTING(optimizer.rate.decay,
              "step that reaches the floor, auto: train.steps; wsd: length of the last part, auto: a tenth "
              "of the steps",
              or_auto(many)),
      SETTING(optimizer.beta1, "AdamW: memory of the mean", share),
      SETTING(optimizer.beta2, "AdamW: memory of the mean square", share),
      SETTING(optimizer.epsilon, "AdamW: added to the root of the mean square", above_0(1)),
      SETTING(
          optimizer.weight_decay,
          "decay of matrices (AdamW: apart from the gradient, SGD: with it); norms and biases do not decay",
          Range{0, 1e3}),
      SETTING(optimizer.momentum, "SGD: memory of the gradient", share),
      SETTING(optimizer.nesterov, "SGD: look ahead"),

      SETTING(memory.device_limit, "memory of a rank (12 GiB); 0: no limit", Range{0}).in(Unit::bytes),

      SETTING(checkpoint.every,
              "steps between checkpoints; none is written yet, so a run says so when this is not 0",
              any_count),
      SETTING(checkpoint.keep, "newest checkpoints that stay", Range{2, many}),

      SETTING(device.kind, "what computes"),
      SETTING(device.threads,
              "threads of a rank; 0: as many processors as it may use; on the cpu at most 16 on each of them",
              Range{0, 4096}),
      SETTING(device.instructions,
              "instruction set of the kernels, on all ranks alike; auto: the best of this processor")
          .one_of({"auto", "avx512+amx", "avx512+bf16", "avx512", "avx2", "baseline"}),
      SETTING(device.description,
              "the device to imitate (emulated) or to price plans for (h200, a100, core); empty: core for "
              "cpu, h200 for cuda"),
      SETTING(device.links.ranks_per_node,
              "ranks of a node that messages are priced for; 0: as device.description", Range{0, 1 << 20}),
      SETTING(device.links.latency, "of a message within a node (2e-6); 0: as device.description",
              Range{0, 1}),
      SETTING(device.links.rate, "bytes a second of a rank within a node (10e9); 0: as device.description",
              Range{0, 1e18}),
      SETTING(device.links.latency_between_nodes, "the same between nodes", Range{0, 1}),
      SETTING(device.links.rate_between_nodes, "the same between nodes", Range{0, 1e18}),
      SETTING(device.transport,
              "cuda: what carries messages between ranks; auto: NCCL where each rank has a GPU of its own, "
              "else MPI through pinned memory"),
      SETTING(device.kernels,
              "cuda: a file of doctor --tune that names the fastest algorithms; an input: with another file, "
              "other bits"),

      SETTING(watchdog.start, "longest start-up before the job is given up (300 s)", above_0(1e9))
          .in(Unit::seconds),
      SETTING(watchdog.step,
              "longest step before the job is given up; 0: ten median steps (the first: thirty times its "
              "price on paper), at least 300 s",
              Range{0, 1e9})
          .in(Unit::seconds),

      SETTING(
          trace.steps,
          "last steps of a training whose actions go to trace.json in run.dir (Perfetto opens it); 0: none",
          Range{0, 1000}),

      SETTING(generate.prompt, "text to go on from"),
      SETTING(generate.tokens, "tokens to write", count),
      SETTING(generate.temperature, "0: always the likeliest token", Range{0, 1e3}),
      SETTING(generate.top_k, "choose among this many likeliest tokens; 0: all", Range{0, 1 << 24}),
      SETTING(generate.top_p, "choose among the likeliest tokens that hold this share", above_0(1)),
  };
}

#undef SETTING

}  // namespace mindpipe
