#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "corpus/corpus.h"
#include "make_backend.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What steps ask a GPU for, by operation.
struct AskedOfGpu {
  struct Sum {
    enum Kind : std::uint8_t { other, product, attention };
    int calls = 0, kernels = 0;
    double read = 0, written = 0, seconds = 0;
    Kind kind = other;
    void operator+=(const Sum& one) {
      calls += one.calls;
      kernels += one.kernels;
      read += one.read;
      written += one.written;
      seconds += one.seconds;
      kind = one.kind;
    }
  };
  std::map<std::string, Sum> operations;

  void add(const PricingBackend::Asked& one) {
    const Sum::Kind kind = one.product != nullptr ? Sum::product
                           : one.is_attention()   ? Sum::attention
                                                  : Sum::other;
    operations[std::string(one.name)] += {1, one.kernels, one.read, one.written, one.seconds, kind};
  }
  Sum sum(Sum::Kind kind) const {
    Sum all;
    for (const auto& [name, one] : operations)
      if (one.kind == kind) all += one;
    return all;
  }
};

/// One of the runs that gpu-check times (scripts/gpu_check/training.py), on one GPU.
struct TimedRun {
  std::string name, config;
  std::int64_t batch, micro_batch, sequence;
  std::vector<std::string> settings = {};
  std::int64_t tokens() const { return batch * sequence; }
};
inline const std::vector<TimedRun>& timed_runs() {
  static const std::vector<TimedRun> runs{
      {"124M", "gpt2-124m", 64, 32, 1024},
      {"1.5B", "gpt2-1.5b", 16, 8, 1024, {"train.recompute=none"}},
      {"8B", "llama-8b", 2, 1, 8192, {"train.recompute=none", "model.layers=8"}}};
  return runs;
}

/// On a device whose passes are planned to take no time.
inline Config config_of(const TimedRun& run) {
  std::vector<std::string> settings{"device.kind=cuda",
                                    "device.description=instant",
                                    "grid.pipeline=1",
                                    "grid.data=1",
                                    "grid.tensor=1",
                                    "reproducible.data=1",
                                    "reproducible.tensor=1",
                                    "train.zero=0",
                                    "train.sequence_parallel=false",
                                    "train.precision=bf16",
                                    "data.train=[synthetic:arithmetic]",
                                    "data.validation=[synthetic:arithmetic]",
                                    fmt::format("train.batch={}", run.batch),
                                    fmt::format("train.micro_batch={}", run.micro_batch),
                                    fmt::format("data.sequence={}", run.sequence)};
  settings.insert(settings.end(), run.settings.begin(), run.settings.end());
  return resolve(read_config(MINDPIPE_SOURCE_DIR "/configs/" + run.config + ".yaml", settings));
}

/// What the second step of the run asks, of a described GPU that computes nothing and has all memory.
inline AskedOfGpu asked_in_a_step(const TimedRun& run, const std::string& device) {
  const Config of_gpu = config_of(run);
  Config config = of_gpu;
  config.device.kind = DeviceKind::emulated;
  AskedOfGpu asked;
  bool listens = false;
  Worker worker(config, {}, make_run_plan(of_gpu, Purpose::training),
                [&](const Config&, Memory& memory, int, const World&) {
                  auto gpu = make_pricing_backend(memory, describe_device(device), true);
                  gpu->on_operation([&](const PricingBackend::Asked& one) {
                    if (listens) asked.add(one);
                  });
                  return gpu;
                });
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  for (int step = 0; step < 2; ++step) {
    listens = step == 1;
    worker.step(corpus, step, step * run.batch, 1e-4);
  }
  return asked;
}

}  // namespace mindpipe
