#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "app/plan/dry_run.h"
#include "app/plan_text.h"
#include "plan/device_on_paper.h"
#include "plan/operation_counts.h"
#include "runtime/asked_of_gpu.h"
#include "runtime/stated_tables.h"

// What `plan --simulate` says that a GPU on paper spends the passes of a micro-batch in: by hand, beside what
// a step asks for, and as it is printed.
namespace mindpipe {
namespace {

Config on_paper(const TimedRun& run, const std::string& device) {
  Config config = config_of(run);
  config.device.description = device;
  return config;
}

/// A model's extents, and the rows of a micro-batch.
struct Extents {
  double layers, width, heads, key_heads, mlp, vocabulary, samples, sequence;
  bool gated;  ///< an MLP of two products that multiply, no biases, rotary positions: Llama's
  double rows() const { return samples * sequence; }
  double head_width() const { return width / heads; }
};
Extents extents_of(const TimedRun& run) {
  const double samples = static_cast<double>(run.micro_batch), rows = static_cast<double>(run.sequence);
  if (run.name == "124M") return {12, 768, 12, 12, 3072, 50304, samples, rows, false};
  if (run.name == "1.5B") return {48, 1600, 25, 25, 6400, 50304, samples, rows, false};
  return {8, 4096, 32, 8, 14336, 128256, samples, rows, true};
}

/// Multiplications and additions in the weights of a layer, each once a row, in three products.
double of_products(const Extents& e) {
  const double projections = e.width * (e.width + 2 * e.key_heads * e.head_width()) + e.width * e.width,
               layer = projections + (e.gated ? 3 : 2) * e.width * e.mlp;
  return 3 * 2 * e.rows() * (e.layers * layer + e.width * e.vocabulary);
}
/// Two products of scores and values forward, five backward; or the heads of q, k and v, out and their
/// gradients, where reading them takes longer.
double seconds_of_attention(const Extents& e, const DeviceDescription& device) {
  const double pair = e.sequence * e.sequence / 2 * e.heads * e.samples * e.head_width(),
               packed = 2 * e.rows() * (e.width + 2 * e.key_heads * e.head_width()),
               out = 2 * e.rows() * e.width;
  const double forward = std::max(4 * pair / device.flops_bf16, (packed + out) / device.bytes),
               backward = std::max(10 * pair / device.flops_bf16, (packed + 2 * out + packed) / device.bytes);
  return e.layers * (forward + backward);
}
/// Bytes of all else, in widths of a row of bf16 that are read and written; sums of chunks of rows beside.
double moved_by_hand(const Extents& e) {
  const double a = 2 * e.rows() * e.width, hidden = e.mlp / e.width,
               chunks = 2 * 4 * std::min(256.0, e.rows() / 32) * e.width;
  const double norms = 2 * (4 + 4), logits = 4 * e.rows() * e.vocabulary;  // both residual norms, both ways
  double layer = norms * a + 2 * 2 * chunks, outside = 0, again = 0;
  if (e.gated) {
    const double turned = 1 + e.key_heads / e.heads;
    layer += a * (2 * 2 * turned + 2 * 3 * hidden + 5 * hidden);  // rotary, SwiGLU made twice, its gradient
    again = logits;                                               // no block holds a row
  } else {
    layer += a * (2 * hidden + 3 + hidden) + chunks * (3 + hidden + 2);  // GELU again, biases
    outside += 3 * a;                                                    // positions
  }
  outside += a * (2 + 2 + 4 + 5);  // embedding, first norm, last norm's gradient, embedding's
  return e.layers * layer + outside + logits + again + logits / 2;
}

TEST(TermsOfAGpu, AreWhatTheModelsExtentsSay) {
  for (const char* name : {"h100", "h200"})
    for (const TimedRun& run : timed_runs()) {
      SCOPED_TRACE(run.name + " on " + name);
      const DeviceDescription device = describe_device(name);
      const Extents extents = extents_of(run);
      const TimeByKind time = time_by_kind(on_paper(run, name));
      EXPECT_NEAR(time.products * device.flops_bf16 / of_products(extents), 1, 0.002);
      EXPECT_NEAR(time.attention / seconds_of_attention(extents, device), 1, 0.002);
      EXPECT_NEAR(time.memory * device.bytes / moved_by_hand(extents), 1, 0.01);
      EXPECT_EQ(time.all(), time.products + time.attention + time.memory + time.launches);
    }
}

TEST(TermsOfAGpu, AreThoseOfAStepWithoutWhatItDoesOnce) {
  const std::set<std::string> once{"adamw_of_spans", "add",       "clip_and_scale",      "copy",
                                   "fill_of_spans",  "sum_spans", "sum_squares_of_spans"};
  for (const char* name : {"h100", "h200"})
    for (const TimedRun& run : timed_runs()) {
      SCOPED_TRACE(run.name + " on " + name);
      const DeviceDescription device = describe_device(name);
      AskedOfGpu passes = asked_in_a_step(run, name);
      std::erase_if(passes.operations, [&](const auto& of) { return once.contains(of.first); });
      const auto times = static_cast<double>(run.batch / run.micro_batch);
      const AskedOfGpu::Sum products = passes.sum(AskedOfGpu::Sum::product),
                            attention = passes.sum(AskedOfGpu::Sum::attention),
                            other = passes.sum(AskedOfGpu::Sum::other);
      const TimeByKind time = time_by_kind(on_paper(run, name));
      EXPECT_NEAR(times * time.products / products.seconds, 1, 1e-3);
      EXPECT_NEAR(times * time.attention / attention.seconds, 1, 1e-9);
      EXPECT_NEAR(times * time.memory / other.seconds, 1, 1e-9);
      EXPECT_NEAR(times * time.launches,
                  device.launch * (products.kernels + attention.kernels + other.kernels), 1e-9);
    }
}

/// What stands behind a term in what plan prints.
std::string printed(const std::string& text, const std::string& term) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(term + " ([0-9.]+ (?:us|ms|s))[,\n]")) ? found[1].str()
                                                                                          : "";
}

TEST(TermsOfAGpu, StandInThePlanAndInTheLedger) {
  const std::vector<std::pair<std::string, double TimeByKind::*>> terms{
      {"products", &TimeByKind::products},
      {"attention", &TimeByKind::attention},
      {"what memory bounds", &TimeByKind::memory},
      {"launches", &TimeByKind::launches}};
  std::string table = "| a micro-batch of | device |", rule = "\n|---|---|";
  for (const auto& [term, member] : terms) {
    table += " " + term + " |";
    rule += "---|";
  }
  table += " all |" + rule + "---|\n";
  for (const TimedRun& run : timed_runs())
    for (const char* name : {"h100", "h200"}) {
      const Config config = on_paper(run, name);
      const std::string text = plan_text(config, 1, true);
      const TimeByKind time = time_by_kind(config);
      table += fmt::format("| {} | {} |", run.name, name);
      for (const auto& [term, member] : terms) {
        EXPECT_EQ(printed(text, term), human_seconds(time.*member)) << text;
        table += fmt::format(" {} |", printed(text, term));
      }
      const std::string all = printed(text, "one rank of each group of tensor:");
      EXPECT_EQ(all, human_seconds(time.all())) << text;
      table += fmt::format(" {} |\n", all);
    }
  expect_stated("plan", "test_app", table);
}

}  // namespace
}  // namespace mindpipe
