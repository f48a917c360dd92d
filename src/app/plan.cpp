#include "app/plan.h"

#include <algorithm>

#include "app/dry_run.h"
#include "app/grid_choice.h"
#include "app/main_verb.h"
#include "app/report_end.h"
#include "app/verbs.h"
#include "core/launcher.h"
#include "core/text.h"
#include "plan/network_on_paper.h"

namespace mindpipe {
namespace {

std::string blocks_of(const Outline& outline, int rank) {
  std::string blocks;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == rank)
      blocks += fmt::format("{}{}-{}", blocks.empty() ? "" : ",", outline.first_block[chunk],
                            outline.first_block[chunk + 1] - 1);
  return blocks;
}

std::string name_of_pass(const Action& action, int chunks) {
  const char* letter = action.kind == ActionKind::forward          ? "F"
                       : action.kind == ActionKind::backward       ? "B"
                       : action.kind == ActionKind::backward_input ? "I"
                                                                   : "W";
  return fmt::format("{}{}{}", letter, action.micro_batch,
                     chunks > 1 ? fmt::format(".{}", action.chunk) : "");
}

/// "F0 F1 B0 ..." of one stage; a backward that is split by blocks counts once.
std::string passes_of(const std::vector<Action>& list, int chunks) {
  constexpr int most = 20;
  std::string text, newest;
  int passes = 0;
  for (const Action& action : list) {
    if (!is_pass(action)) continue;
    const std::string name = name_of_pass(action, chunks);
    if (name == newest) continue;
    if (++passes <= most) text += " " + name;
    newest = name;
  }
  return passes <= most ? text : fmt::format("{} ... ({} in all)", text, passes);
}

std::string order_text(const PlannedStep& step, const Outline& outline) {
  std::string text = fmt::format(
      "\npasses of each stage in order (F forward, B backward, I and W its halves; of which micro-batch{})\n",
      outline.chunks > 1 ? ", behind the point of which chunk" : "");
  for (std::size_t rank = 0; rank < step.program.ranks.size(); ++rank)
    text += fmt::format("{:<6}{}\n", rank, passes_of(step.program.ranks[rank], outline.chunks));
  return text;
}

/// The idle time of a stage, and what its passes spend in sums with the ranks that share their products.
std::string shares_of(const Timeline& expected, int stage) {
  const double sums = 100 * static_cast<double>(expected.sums[stage]) /
                      static_cast<double>(std::max<std::int64_t>(expected.step, 1));
  return fmt::format(" {:>6.1f}% {:>6.1f}%", 100 * expected.bubble(stage), sums);
}

/// What the messages of a step were priced for.
std::string links_text(const Config& config, int ranks) {
  const LinkDescription links = links_on_paper(config);
  if (ranks == 1) return "";
  const auto one = [](double bytes, double latency) {
    return fmt::format("{:.3g} GB/s after {}", bytes * 1e-9, human_seconds(latency));
  };
  std::string text = fmt::format("links (device.links): {}", one(links.bytes, links.latency));
  if (ranks > links.ranks_per_node)
    text += fmt::format(" within a node of {} ranks, {} between nodes", links.ranks_per_node,
                        one(links.bytes_between_nodes, links.latency_between_nodes));
  return text + "\n";
}

std::string text_of(const Config& config, const RunPlan& plan, int ranks, bool simulate) {
  const Outline& outline = plan.outline;
  const Timeline& expected = plan.training.expected;
  const double step = static_cast<double>(expected.step) * 1e-9,
               tokens = static_cast<double>(config.train.batch) * config.data.sequence;
  std::string text =
      fmt::format("{}: {} parameters, {} rank{} ({}), schedule {}, {} micro-batches a rank\n",
                  config.model.kind, plan.parameters, ranks, ranks == 1 ? "" : "s",
                  to_string(make_layout(config, {}).grid), config.schedule.kind, outline.micro_batches);
  if (simulate)
    text += fmt::format("simulated on paper for the device {} (device.description): step {}, {} tokens/s\n{}",
                        device_on_paper(config), human_seconds(step), human_count(tokens / step),
                        links_text(config, ranks));
  text += '\n';
  std::size_t width = 6;
  for (int rank = 0; rank < outline.stages; ++rank) width = std::max(width, blocks_of(outline, rank).size());
  text += fmt::format("{:<6} {:<{}}{} {:>6}", "stage", "blocks", width, simulate ? "  bubble  tensor" : "",
                      "tapes");
  text += memory_head() + "\n";
  const std::vector<int> tapes = peak_tapes(plan.training.program, outline);
  for (int rank = 0; rank < outline.stages; ++rank) {
    text += fmt::format("{:<6} {:<{}}{} {:>6}{}\n", rank, blocks_of(outline, rank), width,
                        simulate ? shares_of(expected, rank) : "", tapes[rank],
                        memory_row(plan.most_memory(rank)));
  }
  return simulate ? text : text + order_text(plan.training, outline);
}

}  // namespace

std::string plan_text(const Config& given, int ranks, bool simulate) {
  const Config config = on_paper(given, ranks);
  return text_of(config, make_run_plan(config), ranks, simulate);
}

int plan(const Arguments& arguments, const Config& given) {
  if (launch().rank != 0) return 0;
  const int ranks = arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given);
  const Config config = on_paper(given, ranks);
  const RunPlan made = make_run_plan(config);
  print(text_of(config, made, ranks, arguments.simulate));
  require_fit(made, config.memory.device_limit);
  return 0;
}

}  // namespace mindpipe
