#include "app/plan.h"

#include <algorithm>

#include "app/main_verb.h"
#include "app/report_end.h"
#include "app/run.h"
#include "app/verbs.h"
#include "core/text.h"

namespace mindpipe {
namespace {

std::string blocks_of(const Outline& outline, int rank) {
  std::string blocks;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == rank)
      blocks += fmt::format("{}{}-{}", blocks.empty() ? "" : ",", outline.first_block[chunk], outline.first_block[chunk + 1] - 1);
  return blocks;
}

}  // namespace

std::string plan_text(const Config& given, int ranks) {
  const Config config = on_paper(given, ranks);
  const RunPlan plan = make_run_plan(config);
  const Outline& outline = plan.outline;
  const Timeline& expected = plan.step.expected;
  const double step = static_cast<double>(expected.step) * 1e-9, tokens = static_cast<double>(config.train.batch) * config.data.sequence;
  std::string text =
      fmt::format("{}: {} parameters, {} rank{} ({}), schedule {}, {} micro-batches a rank\n", config.model.kind, plan.parameters, ranks,
                  ranks == 1 ? "" : "s", to_string(make_layout(config, {}).grid), config.schedule.kind, outline.micro_batches);
  text +=
      fmt::format("simulated on paper (device {}): step {}, {} tokens/s\n\n",
                  config.device.description.empty() ? "core" : config.device.description, human_seconds(step), human_count(tokens / step));
  std::size_t width = 6;
  for (int rank = 0; rank < outline.stages; ++rank) width = std::max(width, blocks_of(outline, rank).size());
  text += fmt::format("{:<6} {:<{}} {:>7} {:>7} {:>6}", "stage", "blocks", width, "bubble", "tensor", "tapes");
  for (MemoryClass kind : memory_classes) text += fmt::format("{:>13}", name_of(kind));
  text += fmt::format("{:>13}\n", "total");
  const std::vector<int> tapes = peak_tapes(plan.step.program, outline);
  bool fits = true;
  for (int rank = 0; rank < outline.stages; ++rank) {
    // Of the step, what passes spend in sums with the ranks that share their products.
    const double sums = 100 * static_cast<double>(expected.sums[rank]) / static_cast<double>(std::max<std::int64_t>(expected.step, 1));
    text += fmt::format("{:<6} {:<{}} {:>6.1f}% {:>6.1f}% {:>6}", rank, blocks_of(outline, rank), width, 100 * expected.bubble(rank), sums,
                        tapes[rank]);
    std::int64_t total = 0;
    for (std::int64_t bytes : plan.most_memory(rank)) {
      text += fmt::format("{:>13}", human_bytes(static_cast<double>(bytes)));
      total += bytes;
    }
    text += fmt::format("{:>13}\n", human_bytes(static_cast<double>(total)));
    fits = fits && (config.memory.device_limit == 0 || total <= config.memory.device_limit);
  }
  if (!fits)
    text += fmt::format(
        "note: a stage does not fit into memory.device_limit ({}); take a smaller train.micro_batch, more stages or train.recompute: "
        "block\n",
        human_bytes(static_cast<double>(config.memory.device_limit)));
  return text;
}

int plan(const Arguments& arguments, const Config& given) {
  print(plan_text(given, arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given)));
  return 0;
}

}  // namespace mindpipe
