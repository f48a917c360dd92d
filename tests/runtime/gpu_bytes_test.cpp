#include <gtest/gtest.h>

#include <set>

#include "runtime/asked_of_gpu.h"
#include "runtime/stated_tables.h"

// The ledger of bytes and launches in kernels/cuda/README.md, and the times on paper beside it, are what
// steps ask for.
namespace mindpipe {
namespace {

using Sum = AskedOfGpu::Sum;
using Steps = std::vector<AskedOfGpu>;

std::string row(const std::string& name, const std::vector<Sum>& sums, bool with_bytes) {
  std::string text = "| " + name + " |";
  for (const Sum& sum : sums) {
    if (sum.calls == 0) text += "  |  |";
    else if (!with_bytes) text += fmt::format(" {} |  |", sum.kernels);
    else text += fmt::format(" {} | {:.3f}, {:.3f} |", sum.kernels, sum.read * 1e-9, sum.written * 1e-9);
  }
  return text + "\n";
}

/// A row for each operation: kernels started, and GB read and written, in a step of each run.
std::string ledger_of(const Steps& steps) {
  std::string head = "| in a step |", rule = "|---|";
  for (const TimedRun& run : timed_runs()) {
    head += fmt::format(" {}: launches | GB read, written |", run.name);
    rule += "---|---|";
  }
  std::string text = head + "\n" + rule + "\n";
  const auto add_row = [&](const std::string& name, const auto& sum_of, bool with_bytes = true) {
    std::vector<Sum> sums;
    for (const AskedOfGpu& step : steps) sums.push_back(sum_of(step));
    text += row(name, sums, with_bytes);
  };
  std::set<std::string> names;
  for (const AskedOfGpu& step : steps)
    for (const auto& [name, sum] : step.operations)
      if (sum.kind == Sum::other) names.insert(name);
  for (const std::string& name : names)
    add_row(name, [&](const AskedOfGpu& step) {
      const auto found = step.operations.find(name);
      return found == step.operations.end() ? Sum{} : found->second;
    });
  add_row("**all of these**", [](const AskedOfGpu& step) { return step.sum(Sum::other); });
  add_row("products", [](const AskedOfGpu& step) { return step.sum(Sum::product); });
  add_row(
      "attention", [](const AskedOfGpu& step) { return step.sum(Sum::attention); }, false);
  return text;
}

/// What llm.c moves and starts beside products and attention in a step of GPT-2, counted from the kernels of
/// train_gpt2.cu with -ge 2: bf16 with f32 masters, GELU within products and made again.
Sum moved_by_llm_c(const TimedRun& run, const Config& config) {
  const double layers = config.model.gpt.layers, width = static_cast<double>(config.model.gpt.width),
               parameters = static_cast<double>(parameters_of(config)),
               rows = static_cast<double>(run.micro_batch * run.sequence), a = 2 * rows * width,
               logits = 2 * rows * 50304;
  Sum one;  // of a micro-batch
  const auto move = [&](double kernels, double read, double written) {
    one.kernels += static_cast<int>(kernels);
    one.read += read;
    one.written += written;
  };
  move(2, 2 * a, 2 * a);                             // embedding, first norm
  move(2 * layers, 4 * layers * a, 4 * layers * a);  // sums with their norms
  move(1, 2 * logits, logits);                       // classifier
  move(1, 0, a);                                     // zeros for the gradient of the last norm's input
  move(2 * (2 * layers + 1), 3 * (2 * layers + 1) * a, (2 * layers + 1) * a);  // norms backward
  move(layers, 4 * layers * a, 4 * layers * a);                                // GELU again
  move(8 * layers, 9 * layers * a, 0);                                         // gradients of biases
  move(4, 3 * a, a);                                                           // embedding backward
  const auto times = static_cast<double>(run.batch / run.micro_batch);
  Sum all{1, static_cast<int>(times) * one.kernels, times * one.read, times * one.written};
  all.kernels += 1 + 17 + 16;  // zeros, norm, AdamW
  all.read += (2 + 14) * parameters;
  all.written += (2 + 14) * parameters;
  return all;
}

struct Time {
  double products, attention, memory, launches;
  double all() const { return products + attention + memory + launches; }
};
Time time_of(const AskedOfGpu& step, const Sum& other, const DeviceDescription& device) {
  const Sum products = step.sum(Sum::product), attention = step.sum(Sum::attention);
  return {products.seconds, attention.seconds, (other.read + other.written) / device.bytes,
          device.launch * (products.kernels + attention.kernels + other.kernels)};
}

/// Milliseconds of a step by the description of a device, beside those with llm.c's bytes and launches.
std::string times_of(const std::vector<std::pair<std::string, Steps>>& all) {
  std::string text =
      "| ms of a step | device | products | attention | memory | launches | all | tokens/s | memory, "
      "launches "
      "of llm.c | its tokens/s | ours to it |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < timed_runs().size(); ++i)
    for (const auto& [name, steps] : all) {
      const TimedRun& run = timed_runs()[i];
      const DeviceDescription device = describe_device(name);
      const auto rate = [&](const Time& time) { return static_cast<double>(run.tokens()) / time.all(); };
      const Time ours = time_of(steps[i], steps[i].sum(Sum::other), device);
      text += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.0f}K |", run.name,
                          name, ours.products * 1e3, ours.attention * 1e3, ours.memory * 1e3,
                          ours.launches * 1e3, ours.all() * 1e3, rate(ours) * 1e-3);
      const Config config = config_of(run);
      if (config.model.kind != ModelKind::gpt || config.model.gpt.norm != ModelNorm::layer) {
        text += "  |  |  |\n";
        continue;
      }
      Time theirs = time_of(steps[i], moved_by_llm_c(run, config), device);
      text += fmt::format(" {:.1f}, {:.1f} | {:.0f}K | {:.3f} |\n", theirs.memory * 1e3,
                          theirs.launches * 1e3, rate(theirs) * 1e-3, theirs.all() / ours.all());
      EXPECT_GE(theirs.all() / ours.all(), run.name == "124M" ? 1.0 : 0.99) << run.name << ", " << name;
    }
  return text;
}

TEST(BytesOfGpu, TheLedgerAndTheTimesOnPaperAreWhatStepsAskFor) {
  std::vector<std::pair<std::string, Steps>> all;
  for (const char* device : {"h100", "h200"}) {
    all.emplace_back(device, Steps{});
    for (const TimedRun& run : timed_runs()) all.back().second.push_back(asked_in_a_step(run, device));
  }
  expect_stated("bytes", "test_runtime", ledger_of(all[0].second));
  expect_stated("times", "test_runtime", times_of(all));
}

}  // namespace
}  // namespace mindpipe
