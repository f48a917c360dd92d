#include <algorithm>

#include "config/config.h"
#include "config/settings.h"

namespace mindpipe {

/// A setting by its role and the member that holds it, whose path is its key; then its meaning and its range.
#define SETTING(role, member, ...) Setting(#member, &c.member, __VA_ARGS__).playing(Setting::Role::role)

std::vector<Setting> common_settings(Config& c) {  // table
  const bool in_steps = !row_of(c.model.kind).trains_subnets;
  using Unit = Setting::Unit;
  constexpr double many = 1 << 30;
  constexpr Range count{1, many}, any_count{0, many}, share{0, 1, false, true};
  const auto above_0 = [](double most) { return Range{0, most, true}; };
  const auto or_auto = [](double most) { return Range{1, most, false, false, "auto"}; };
  constexpr Range count_or_all{1, many, false, false, "all"};
  const Range degree = or_auto(1 << 20);
  return {
      SETTING(arithmetic, seed, "seed of all random numbers of the run"),

      SETTING(layout, run.dir, "the run directory; everything the run writes is below it").required(),
      SETTING(layout, run.resume,
              "auto: go on from the newest whole checkpoint in run.dir; never: begin; or the directory of a "
              "checkpoint to go on from"),
      SETTING(layout, run.weights,
              "weights to begin with: a safetensors file, a directory of Hugging Face's transformers, or a "
              "checkpoint; empty: they are drawn from the seed"),
      SETTING(layout, run.new_head,
              "draw the weights of the head, and leave out those of run.weights: for other words or classes"),
      SETTING(
          layout, run.max_walltime,
          "stop cleanly, with a checkpoint, and exit 75 within this time (23h50m); 0: no limit but that of a "
          "Slurm job, for which scontrol is asked",
          Range{0, 1e9})
          .in(Unit::seconds),
      SETTING(layout, run.stop_after,
              "stop in the same way after this many steps; a start with a larger number, or 0, goes on; 0: "
              "no such "
              "stop",
              any_count),
      SETTING(layout, run.log_every,
              "steps between lines of progress where the log is no terminal; auto: after steps 1, 2, 5, 10, "
              "20, 50 ..., and then one a minute",
              or_auto(many)),

      SETTING(arithmetic, model.kind, "kind of model; each kind has settings of its own"),

      SETTING(arithmetic, data.train, "what to train on").required(),
      SETTING(course, data.validation, "what to evaluate on; of several sources each has a loss of its own"),
      SETTING(
          layout, data.tokenizer,
          "what turns text into tokens: tokenizer.json, a folder of vocab.json and merges.txt, vocab.txt, "
          "FILE.tiktoken:PATTERN, a SentencePiece FILE.model; empty: a token is a byte. Vocabulary and "
          "special "
          "tokens are its own unless they are set")
          .deciding(),
      SETTING(arithmetic, data.tokenizer_hash,
              "SHA-256 of the tokenizer's files; empty: worked out at the start"),
      Setting(
          "data.template", &c.data.chat_template,
          "how generate writes a prompt as a conversation: chatml, llama3 or a JSON file; empty: as it is")
          .playing(Setting::Role::layout),

      SETTING(layout, grid.supernet, "lanes that train different subnets; auto: the rest of the ranks",
              degree),
      SETTING(layout, grid.pipeline,
              "pipeline stages; auto: the rest of the ranks, or what is fastest on paper where several "
              "degrees are auto",
              degree),
      SETTING(layout, grid.data,
              "data-parallel replicas, a divisor of reproducible.data; auto: the rest of the ranks", degree),
      SETTING(layout, grid.tensor,
              "ranks that share each product, a divisor of reproducible.tensor; auto: the rest of the ranks",
              degree),

      Setting(
          "schedule.kind", &c.schedule.kind,
          "order of forwards and backwards in the pipeline; supernets: causal (each subnet sees all updates "
          "of those before it), or, to compare with, bulk or free, whose bits depend on the layout")
          .playing(in_steps ? Setting::Role::layout : Setting::Role::arithmetic)
          .or_searched(in_steps),
      SETTING(layout, schedule.chunks,
              "pieces of the model on each stage (" +
                  names_with<ScheduleKind>(&ScheduleRow::has_chunks, ", ") +
                  "; always two in a V: " + names_with<ScheduleKind>(&ScheduleRow::in_v, ", ") + ")",
              Range{1, 1024})
          .or_searched(),
      SETTING(layout, schedule.cuts, "first block of each stage but the first; empty: balanced", count)
          .or_searched(),
      SETTING(
          layout, schedule.groups.forward,
          "micro-batches of each group of forwards (elastic), which add up to a rank's, each at least the "
          "number of stages; auto: the fastest on paper",
          or_auto(many)),
      SETTING(layout, schedule.groups.backward,
              "micro-batches of each group of backwards (elastic); the sums of a chunk over data go on under "
              "the last one; auto: the fastest on paper",
              or_auto(many)),
      SETTING(layout, schedule.memory,
              "largest tapes of a stage where weight gradients are put off (" +
                  names_with<ScheduleKind>(&ScheduleRow::splits_backward, ", ") +
                  "), as a multiple of 1f1b's: 1.1, for instance; auto: the schedule's own",
              Range{0, 100, true, false, "auto"}),

      SETTING(arithmetic, reproducible.tensor,
              "logical shards of each product, fixed for the life of a run; auto: grid.tensor", degree),
      SETTING(arithmetic, reproducible.data,
              "logical shards of the batch, fixed for the life of a run; auto: grid.data", degree),

      SETTING(course, train.steps, "steps of the whole run; supernets: subnets", any_count),
      SETTING(arithmetic, train.batch, "samples per step over all replicas", count),
      SETTING(arithmetic, train.micro_batch,
              "samples that pass through the model at once; another number gives other (equally good) bits",
              count)
          .or_searched(),
      SETTING(arithmetic, train.precision,
              "type of activations and of the weights that compute; masters are f32"),
      SETTING(layout, train.recompute,
              "blocks whose forward is computed again in the backward, to save memory; numbers as in "
              "schedule.cuts",
              any_count)
          .or_searched(),
      SETTING(
          layout, train.swap,
          "blocks whose part of a tape waits in the host's memory between forward and backward, copied while "
          "others compute; numbers as in schedule.cuts",
          any_count)
          .or_searched(),
      SETTING(layout, train.sequence_parallel, "tensor ranks share the sequence between products")
          .or_searched(),
      SETTING(layout, train.zero,
              "shard over data: 0 nothing, 1 optimizer state, 2 gradients too: whole ones live until they "
              "are summed",
              Range{0, 2})
          .or_searched(),
      SETTING(course, train.clip, "largest global norm of the gradient; 0: no clipping", Range{0, 1e30}),
      SETTING(arithmetic, train.label_smoothing,
              "probability spread evenly over all tokens or classes, the right one included", share),
      SETTING(course, train.evaluate_every, "steps between evaluations on data.validation; 0: never",
              any_count),
      SETTING(course, train.evaluate_batches,
              "batches of one evaluation; all: once over each source of data.validation, where it has an end",
              count_or_all),
      SETTING(layout, train.noise_every,
              "steps between measurements of the noise scale, which says what a batch is worth; 0: never",
              any_count),
      SETTING(layout, train.norms_every,
              "steps between measurements of the norms of each layer's gradient and weights; 0: never",
              any_count),

      SETTING(arithmetic, optimizer.kind, "rule of the update"),
      SETTING(course, optimizer.rate.kind, "curve of the learning rate after the warm-up"),
      SETTING(course, optimizer.rate.peak, "the highest learning rate", Range{0, 1e6}),
      SETTING(course, optimizer.rate.floor, "learning rate that the curve falls to; at most peak",
              Range{0, 1e6}),
      SETTING(course, optimizer.rate.warmup, "steps from rate 0 to peak", any_count),
      SETTING(
          course, optimizer.rate.decay,
          "step (from 0) whose rate is the floor; auto: train.steps, so that the last step is still above "
          "it; wsd: steps of the last part, auto: a tenth of the steps",
          or_auto(many)),
      SETTING(course, optimizer.rate.drops, "kind steps: the rate drops at each of these steps, as [60, 120]",
              any_count),
      SETTING(course, optimizer.rate.drop_factor, "kind steps: factor of the rate at each drop", above_0(1)),
      SETTING(arithmetic, optimizer.beta1, "AdamW: share of the gradient's mean that a step keeps", share),
      SETTING(arithmetic, optimizer.beta2, "AdamW: share of the mean square that a step keeps", share),
      SETTING(arithmetic, optimizer.epsilon, "AdamW: added to the root of the mean square", above_0(1)),
      SETTING(course, optimizer.weight_decay,
              "weight decay of matrices (AdamW: apart from the gradient, SGD: with it); norms and biases do "
              "not decay",
              Range{0, 1e3}),
      SETTING(arithmetic, optimizer.momentum, "SGD: share of the velocity that a step keeps", share),
      SETTING(arithmetic, optimizer.nesterov, "SGD: Nesterov's momentum"),

      SETTING(layout, memory.device_limit, "memory of a rank (12 GiB); 0: no limit", Range{0})
          .in(Unit::bytes),
      SETTING(layout, memory.host_limit,
              "memory of the host that a rank may keep state and swapped tapes in (64 GiB); 0: no limit",
              Range{0})
          .in(Unit::bytes),
      SETTING(
          layout, memory.optimizer,
          "where masters and moments are kept: on the device, or in the host's memory, whence each unit's "
          "come for its update alone; without an effect on any bit"),

      SETTING(layout, repartition.at,
              "cuts that the run comes to while it trains: in each of these steps blocks change to the stage "
              "beside theirs, with their masters and moments; without an effect on any bit"),
      SETTING(layout, repartition.every,
              "steps between reports of how long the work of each stage takes, by which the run itself moves "
              "blocks from slow stages to faster ones; without an effect on any bit; 0: never",
              any_count),
      SETTING(layout, repartition.room, "blocks that one boundary moves in a step, at most", count),

      SETTING(layout, checkpoint.every,
              "steps between checkpoints; 0: only when the run stops and at its end", any_count),
      SETTING(layout, checkpoint.every_time,
              "time between checkpoints (30m), also between those of checkpoint.every; 0: no limit",
              Range{0, 1e9})
          .in(Unit::seconds),
      SETTING(layout, checkpoint.keep, "newest checkpoints that stay", Range{2, many}),
      SETTING(layout, checkpoint.keep_every,
              "checkpoints at multiples of this many steps stay for good, as does the best by validation "
              "loss; 0: "
              "none",
              any_count),
      SETTING(layout, checkpoint.background,
              "auto: train on while a copy of the state is written, if the copy fits into memory; no: wait"),
      SETTING(layout, checkpoint.writer,
              "direct: each rank writes its part of the file; mpiio: through MPI-IO, while training waits"),
      SETTING(layout, checkpoint.on_error,
              "when a checkpoint cannot be written: stop with exit code 74, or warn and train on"),

      Setting("export.part", &c.exported.part,
              "most bytes of a file of weights for others (5GB); a model that takes more has parts and an "
              "index",
              Range{1, 0x1p60})
          .in(Unit::bytes)
          .playing(Setting::Role::layout),
      Setting("export.precision", &c.exported.precision, "type of the weights in files for others")
          .playing(Setting::Role::layout),
      Setting("export.names", &c.exported.names,
              "names in files for others: those of Hugging Face's transformers, or with the words of "
              "mindspore.nn (gamma, beta, embedding_table)")
          .playing(Setting::Role::layout),

      SETTING(layout, device.kind, "what computes"),
      SETTING(layout, device.threads,
              "threads of a rank; 0: as many processors as it may use; on the cpu at most 16 on each of them",
              Range{0, 4096}),
      SETTING(layout, device.instructions,
              "instruction set of the kernels, on all ranks alike; auto: the best of this processor")
          .one_of({"auto", "avx512+amx", "avx512+bf16", "avx512", "avx2", "baseline"}),
      SETTING(
          layout, device.description,
          "the device to imitate (emulated) or to price plans for: h200, h100, a100, core, or a file like "
          "configs/devices/a100.yaml; empty: core for cpu, h200 for cuda"),
      SETTING(layout, device.profile,
              "a file of mindpipe-train profile, whose prices plans take in place of a description's; an "
              "emulated device takes as long as they say"),
      SETTING(layout, device.links.ranks_per_node,
              "ranks of a node that messages are priced for; 0: as device.description", Range{0, 1 << 20}),
      SETTING(layout, device.links.latency,
              "latency of a message within a node, seconds (2e-6); 0: as device.description", Range{0, 1}),
      SETTING(layout, device.links.rate,
              "bytes a second of a rank within a node (10e9); 0: as device.description", Range{0, 1e18}),
      SETTING(layout, device.links.latency_between_nodes,
              "latency of a message between nodes, seconds; 0: as device.description", Range{0, 1}),
      SETTING(layout, device.links.rate_between_nodes,
              "bytes a second of a rank between nodes; 0: as device.description", Range{0, 1e18}),
      SETTING(layout, device.links.copies,
              "bytes a second between a device and its host, each way; 0: as device.description",
              Range{0, 1e18}),
      SETTING(layout, device.transport,
              "cuda: what carries messages between ranks; auto: NCCL where each rank has a GPU of its own, "
              "else MPI through pinned memory"),
      SETTING(layout, device.reserved_multiprocessors,
              "cuda: multiprocessors that products leave to NCCL's messages, on all ranks alike; sums of "
              "gradients take no more than these; another number gives other bits",
              Range{0, 1024}),
      SETTING(layout, device.kernels,
              "cuda: a file of doctor --tune that names the fastest algorithms; an input: with another file, "
              "other bits"),
      SETTING(
          layout, device.attention_workspace,
          "cuda: the most working memory of a cuDNN plan for attention (2 GiB); another limit gives other "
          "bits",
          Range{0, 0x1p50})
          .in(Unit::bytes),
      SETTING(
          layout, device.attention_beyond,
          "cuda: attention whose plan would take more; pieces: samples, or heads of one sample, one after "
          "the other; own: our own kernels"),

      SETTING(layout, watchdog.start, "longest start-up before the job is given up (300 s)", above_0(1e9))
          .in(Unit::seconds),
      SETTING(layout, watchdog.step,
              "longest step before the job is given up; 0: ten median steps (the first: thirty times its "
              "price on paper), at least 300 s",
              Range{0, 1e9})
          .in(Unit::seconds),

      SETTING(course, guard.skips,
              "steps in a row whose loss or gradient is not finite, after which the run goes back to its "
              "newest checkpoint; such a step changes nothing",
              count),
      SETTING(course, guard.spike,
              "a loss goes too far, and the run back, when it is this many median absolute deviations above "
              "the median of the last 64 that did not (10); 0: none does",
              Range{0, 1e9}),
      SETTING(layout, guard.replicas_every,
              "steps between comparisons of what ranks hold alike, which find a bit that has changed in the "
              "memory of one, besides those before each save; 0: only those",
              any_count),
      SETTING(course, guard.rollbacks,
              "how often a run goes back and leaves out the samples since, before it ends with exit code 79; "
              "auto: 2 where checkpoints are made by number or time, else 0",
              Range{0, many, false, false, "auto", -1}),

      SETTING(layout, trace.steps,
              "last steps of a training (of a supernet: subnets) whose actions go to trace.json in run.dir "
              "(Perfetto opens it); 0: none",
              Range{0, 1000}),

      SETTING(
          layout, energy.meter,
          "what measures the energy of a run: auto: the meters that this user may read, else an estimate by "
          "busy and waiting time; rapl: processors and memory; nvml: GPUs; none: nothing"),
      SETTING(layout, energy.powercap,
              "rapl: where the kernel's counters stand; a container may have them elsewhere"),
      SETTING(layout, energy.cap, "say what power RAPL or NVML allow now; nothing sets a limit or a clock"),
      SETTING(layout, energy.carbon_intensity,
              "grams of CO2 equivalent a kWh; 0: not known, and nothing is said of CO2", Range{0, 1e5}),
      SETTING(layout, energy.source, "who says so; stands beside all that is computed with it"),
      SETTING(layout, energy.pue, "energy of the facility over that of its computers; 1: no overhead",
              Range{1, 100}),
      SETTING(
          layout, energy.forecast,
          "a file with lines like 2026-11-26T14:00Z,412: intensities by hour; plan says when to start then"),
      SETTING(layout, energy.duration,
              "how long the run takes that is to start then (12h30m); 0: its steps on paper", Range{0, 1e9})
          .in(Unit::seconds),
      SETTING(layout, energy.deadline, "by when, from now on, it has to end (36h); 0: the forecast's end",
              Range{0, 1e9})
          .in(Unit::seconds),

      SETTING(layout, plan.objective,
              "what the best plan of plan --search has least of, for what its step is worth"),
      SETTING(
          layout, plan.batches,
          "train.batch that it compares; empty: the run's (others need plan.noise_scale); auto: a quarter "
          "to four times the run's, of which a training takes the best",
          count)
          .or_searched(),
      SETTING(layout, plan.noise_scale,
              "the noise scale in samples, or a run with train.noise_every; auto: run.dir; empty: not known"),
      SETTING(layout, plan.rank_hour, "objective cost: price of an hour of a rank", Range{0, 1e12}),
      SETTING(layout, plan.kwh, "objective cost: price of a kilowatt-hour", Range{0, 1e12}),
      SETTING(layout, plan.co2_kg, "objective cost: price of a kilogram of CO2 equivalent", Range{0, 1e12}),

      SETTING(layout, generate.prompt, "text to go on from"),
      SETTING(layout, generate.tokens, "tokens to write", count),
      SETTING(layout, generate.temperature,
              "randomness of the choice of tokens; 0: always the likeliest token", Range{0, 1e3}),
      SETTING(layout, generate.top_k, "choose among this many likeliest tokens; 0: all", Range{0, 1 << 24}),
      SETTING(layout, generate.top_p, "choose among the likeliest tokens that hold this share", above_0(1)),
  };
}

#undef SETTING

std::vector<Setting> settings_of_kind(Config& config, ModelKind kind) {
#define MINDPIPE_KIND_SETTINGS(kind, ...) kind::settings,
  constexpr std::vector<Setting> (*of_kinds[])(Config&) = {MINDPIPE_MODELS(MINDPIPE_KIND_SETTINGS)};
#undef MINDPIPE_KIND_SETTINGS
  return of_kinds[static_cast<std::size_t>(kind)](config);
}

std::vector<Setting> settings_of(Config& config) {
  std::vector<Setting> all = common_settings(config);
  const auto section = [](const Setting& s) { return s.key().substr(0, s.key().find('.')); };
  for (Setting& setting : settings_of_kind(config, config.model.kind)) {
    const auto last = std::find_if(all.rbegin(), all.rend(),
                                   [&](const Setting& other) { return section(other) == section(setting); });
    all.insert(last == all.rend() ? all.end() : last.base(), std::move(setting));
  }
  return all;
}

}  // namespace mindpipe
