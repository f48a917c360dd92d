#include "app/main_verb.h"
#include "app/report_end.h"
#include "app/run.h"
#include "app/verbs.h"
#include "core/text.h"

namespace mindpipe {

/// What a configuration would do on any number of ranks, told on one process without messages: step, bubble and memory of every stage.
int plan(const Arguments& arguments, const Config& given) {
  const int ranks = arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given);
  const Config config = with_grid(given, ranks);
  const RunPlan plan = make_run_plan(config);
  const Outline& outline = plan.outline;
  const Timeline& expected = plan.step.expected;
  const double step = static_cast<double>(expected.step) * 1e-9, tokens = static_cast<double>(config.train.batch) * config.data.sequence;
  std::string text = fmt::format("{} parameters, {} ranks ({}), schedule {}, {} micro-batches a rank\n", plan.parameters, ranks, to_string(make_layout(config, {}).grid),
                                 config.schedule.kind, outline.micro_batches);
  text += fmt::format("simulated on paper (device {}): step {}, {} tokens/s; tensor sums are not priced\n\n", config.device.description.empty() ? "core" : config.device.description,
                      human_seconds(step), human_count(tokens / step));
  text += "stage  blocks      bubble  tapes";
  for (MemoryClass kind : memory_classes) text += fmt::format("{:>13}", name_of(kind));
  text += fmt::format("{:>13}\n", "total");
  const std::vector<int> tapes = peak_tapes(plan.step.program, outline);
  for (int rank = 0; rank < outline.stages; ++rank) {
    std::string blocks;
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
      if (outline.rank_of(chunk) == rank) blocks += fmt::format("{}{}-{}", blocks.empty() ? "" : ",", outline.first_block[chunk], outline.first_block[chunk + 1] - 1);
    text += fmt::format("{:<6} {:<10} {:>6.1f}%  {:>5}", rank, blocks, 100 * expected.bubble(rank), tapes[rank]);
    std::int64_t total = 0;
    for (std::int64_t bytes : plan.memory[rank]) {
      text += fmt::format("{:>13}", human_bytes(static_cast<double>(bytes)));
      total += bytes;
    }
    text += fmt::format("{:>13}\n", human_bytes(static_cast<double>(total)));
  }
  print(text);
  return 0;
}

}  // namespace mindpipe
