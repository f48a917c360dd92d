#include "app/plan/dry_run.h"

#include <algorithm>
#include <map>
#include <set>

#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "app/plan/plan_subnets.h"
#include "app/plan/proof_text.h"
#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/bulk_parts.h"
#include "core/text.h"
#include "plan/cost_model.h"
#include "plan/memory_limits.h"
#include "plan/moves_of_run.h"
#include "plan/operation_counts.h"
#include "program/choice_parts.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

std::string blocks_text(const Config& config, const RunPlan& plan) {
  CostModel measure(config, make_layout(config, {}));
  std::string text = "block                        parameters  stage  kept per micro-batch\n";
  bool shared = false;
  for (int b = 0; b < static_cast<int>(plan.outline.blocks.size()); ++b) {
    const Model::Block& block = measure.model().blocks()[b];
    std::int64_t parameters = 0;
    for (int unit : block.units) parameters += measure.model().units()[unit]->parameters();
    const bool shares = !block.units.empty() && measure.stage().use_of({block.units[0], b}) > 0;
    shared = shared || shares;
    std::int64_t saved = 0;
    int candidates = 0;
    for (const BlockPart& part : choice_parts(plan.outline, b)) {
      std::int64_t most = plan.outline.cost(b, part.first).saved;
      for (int i = 1; i < part.count; ++i) most = std::max(most, plan.outline.cost(b, part.first + i).saved);
      saved += most;
      candidates += part.count;
    }
    text +=
        fmt::format("{:<28} {:>10}{} {:>5}  {:>10}{}\n", block.name, parameters, shares ? "*" : " ",
                    plan.outline.rank_of(plan.outline.chunk_of(b)), human_bytes(static_cast<double>(saved)),
                    block.is_choice() ? fmt::format("  at most, of {} candidates", candidates) : "");
  }
  return text + (shared ? "(* with a table that an earlier block also uses)\n" : "");
}

std::string memory_text(const RunPlan& plan, std::int64_t limit) {
  std::string text = fmt::format("\nmemory per stage\n{:<8}{}\n", "stage", memory_head());
  for (int rank = 0; rank < static_cast<int>(plan.memory.size()); ++rank) {
    const BytesByClass& bytes = plan.most_memory(rank);
    text += fmt::format("{:<8}{}\n", rank, memory_row(bytes));
    if (limit > 0 && total_of(bytes) > limit)
      text += fmt::format("  does not fit into memory.device_limit ({})\n",
                          human_bytes(static_cast<double>(limit)));
  }
  return text + host_text(plan);
}

std::string workspace_text(const RunPlan& plan, int threads) {
  std::string text = fmt::format(
      "\nworkspace per stage, with {} thread{} a rank "
      "(device.threads)\n{:<8}{:>13}{:>13}{:>13}{:>13}{:>13}{:>13}{:>13}\n",
      threads, threads == 1 ? "" : "s", "stage", "layers", "tensor sums", "zeros", "data sums", "products",
      "attention", "rotary");
  for (std::size_t rank = 0; rank < plan.footprints.size(); ++rank) {
    const RankFootprint& footprint = plan.footprints[rank];
    const Workspace& kernels = footprint.passes.backend;
    text += fmt::format("{:<8}", rank);
    for (std::size_t bytes :
         {footprint.passes.scratch, footprint.passes.exchange, footprint.passes.zeros,
          parts_under_way * *std::max_element(footprint.reduction.begin(), footprint.reduction.end()),
          kernels.products, kernels.attention, kernels.rotary})
      text += fmt::format("{:>13}", human_bytes(static_cast<double>(bytes)));
    text += '\n';
  }
  return text;
}

/// "forwards by plans of cuDNN, backwards by our own kernels (beyond device.attention_workspace)"
std::string served_text(const Workspace& all) {
  std::string text;
  for (const bool backward : {false, true}) {
    const auto is_own = [&](OwnAttention why) { return all.own.contains({backward, why}); };
    std::string reasons;
    for (const auto& [why, words] :
         {std::pair{OwnAttention::form, "f32, dropout, or heads that are not planned"},
          {OwnAttention::limit, "beyond device.attention_workspace"},
          {OwnAttention::refused, "refused by cuDNN"}})
      if (is_own(why)) reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", words);
    const bool is_planned = std::any_of(all.planned.begin(), all.planned.end(),
                                        [&](const auto& question) { return question.backward == backward; });
    if (!is_planned && reasons.empty()) continue;  // a run that only reads
    text += fmt::format("{}{} by {}{}", text.empty() ? "" : ", ", backward ? "backwards" : "forwards",
                        is_planned ? "plans of cuDNN" : "our own kernels",
                        reasons.empty() ? ""
                        : is_planned    ? fmt::format(", or our own kernels ({})", reasons)
                                        : fmt::format(" ({})", reasons));
  }
  return text;
}

/// The name of a block with N for the number of its layer.
std::string kind_of_block(std::string name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::size_t end = std::min(name.find_first_not_of("0123456789", i), name.size());
    if (end > i && (i == 0 || name[i - 1] == '.')) name.replace(i, end - i, "N");
  }
  return name;
}

}  // namespace

std::string undivided_text(const Config& config) {
  if (config.grid.tensor == 1) return "";
  constexpr double least = 0.005;
  const UndividedShares shares = undivided_shares(config);
  const auto percent = [](double share) { return fmt::format("{:.0f} %", 100 * share); };
  std::map<std::string, std::set<std::string>> percents_of_kinds;
  for (const auto& [block, share] : shares.of_blocks)
    percents_of_kinds[kind_of_block(block)].insert(percent(share));
  std::string text;
  for (const auto& [block, share] : shares.of_blocks) {
    const std::string kind = kind_of_block(block);
    const bool are_alike = percents_of_kinds[kind].size() == 1;
    const std::string part = fmt::format(" {} of {},", percent(share), are_alike ? kind : block);
    if (share >= least && text.find(part) == std::string::npos) text += part;
  }
  if (text.empty()) return "";
  return fmt::format("undivided over tensor: every rank computes{} {:.0f} % of the model's operations\n",
                     text, 100 * shares.of_model);
}

std::string attention_text(const Config& config, const RunPlan& plan) {
  if (config.device.kind != DeviceKind::cuda) return "";
  Workspace all;
  for (const RankFootprint& rank : plan.footprints) all.include(rank.passes.backend);
  if (all.planned.empty() && all.own.empty()) return "";
  const auto is_own = [&](OwnAttention why) {
    return all.own.contains({false, why}) || all.own.contains({true, why});
  };
  std::string text = "attention: " + served_text(all);
  if (all.attention > 0)
    text += fmt::format("; plans take {} at most, {}", human_bytes(static_cast<double>(all.attention)),
                        source_of_attention(device_on_paper(config)));
  else text += ", without working memory";
  if (all.attention > 0 || is_own(OwnAttention::limit))
    text += fmt::format(
        "; a plan may take {} (device.attention_workspace), and what would take more {} "
        "(device.attention_beyond)",
        human_bytes(static_cast<double>(config.device.attention_workspace)),
        config.device.attention_beyond == AttentionBeyond::pieces
            ? "runs in pieces, or by our own kernels where no piece is small enough"
            : "is computed by our own kernels");
  return text + "\n";
}

std::string time_text(const Config& config) {
  if (config.device.kind != DeviceKind::cuda || !config.device.profile.empty()) return "";
  const TimeByKind time = time_by_kind(config);
  return fmt::format(
      "forward and backward of a micro-batch, all blocks on one rank of each group of tensor: {}, of which "
      "products {}, attention {}, what memory bounds {}, launches {}\n",
      human_seconds(time.all()), human_seconds(time.products), human_seconds(time.attention),
      human_seconds(time.memory), human_seconds(time.launches));
}

std::string host_text(const RunPlan& plan) {
  if (!plan.trains_steps()) return "";
  const auto most = [&](const auto& bytes_of) {
    int at = 0;
    for (int stage = 1; stage < plan.outline.stages; ++stage)
      if (bytes_of(stage) > bytes_of(at)) at = stage;
    return fmt::format("{} of a rank of stage {}, at most", human_bytes(static_cast<double>(bytes_of(at))),
                       at);
  };
  std::string text;
  if (plan.outline.state_on_host)
    text += fmt::format(
        "masters and moments are kept on the host (memory.optimizer): {}; the device has those of {} units "
        "at "
        "a time\n",
        most([&](int stage) { return plan.most_on_host(stage) - plan.segments_on_host(stage); }),
        state_slots);
  if (swaps_blocks(plan.outline))
    text += fmt::format("tapes of swapped blocks wait on the host (train.swap): {}\n",
                        most([&](int stage) { return plan.segments_on_host(stage); }));
  return text;
}

std::string memory_head() {
  std::string text;
  for (MemoryClass kind : memory_classes) text += fmt::format("{:>13}", name_of(kind));
  return text + fmt::format("{:>13}", "total");
}

std::string memory_row(const BytesByClass& bytes) {
  std::string text;
  for (std::int64_t part : bytes) text += fmt::format("{:>13}", human_bytes(static_cast<double>(part)));
  return text + fmt::format("{:>13}", human_bytes(static_cast<double>(total_of(bytes))));
}

std::string roots_text(const Config& config, const RunPlan& plan) {
  const SumTree data = data_tree(plan.outline), tensor(config.reproducible.tensor, config.grid.tensor);
  const int roots = data.most_roots(), levels = data.levels();
  std::string text;
  if (roots > 1 && plan.trains_steps()) {
    double sent = 0, partial = 0;
    for (int stage = 0; stage < plan.outline.stages; ++stage) {
      double bytes = 0;
      for (const Action& action : plan.training.program.ranks[stage])
        if (action.kind == ActionKind::reduce) bytes += static_cast<double>(action.bytes);
      sent = std::max(sent, bytes);
      const auto gradients = plan.most_memory(stage)[static_cast<int>(MemoryClass::gradients)];
      partial = std::max(partial, static_cast<double>(gradients) * levels / (1 + levels));
    }
    const int gathers = plan.outline.sharded_optimizer ? 0 : 1;
    text += fmt::format(
        "sums over data: a rank's {} of {} shards are up to {} subtrees, each sent by itself: {} a step of a "
        "rank, {} if they were one; {} partial sums beside each gradient, about {} of them\n",
        data.leaves_here(), config.reproducible.data, roots, human_bytes(sent),
        human_bytes(sent * (1 + gathers) / (roots + gathers)), levels, human_bytes(partial));
  }
  if (tensor.most_roots() > 1)
    text += fmt::format(
        "sums over tensor: a rank's {} of {} shards are up to {} subtrees, each sent by itself: the first "
        "half "
        "of a sum sends {} times as much as if they were one\n",
        tensor.leaves_here(), config.reproducible.tensor, tensor.most_roots(), tensor.most_roots());
  return text;
}

std::string dry_run_text(const Config& config, const RunPlan& plan) {
  const int ranks = ranks_of_grid(config);
  return fmt::format("{}: {} parameters, {} blocks, {} rank{}; nothing was allocated\n\n", config.model.kind,
                     plan.parameters, plan.outline.blocks.size(), ranks, ranks == 1 ? "" : "s") +
         blocks_text(config, plan) + memory_text(plan, config.memory.device_limit) +
         (plan.subnets ? rooms_text(config, plan) : "") + roots_text(config, plan) + undivided_text(config) +
         workspace_text(plan, config.device.threads) + attention_text(config, plan) +
         fmt::format(
             "\noperations per {}, forward and backward of the whole model: {:.4g} counted in its "
             "products, {:.4g} by {}\n",
             plan.counted.what, plan.operations, plan.formula.operations, plan.formula.text);
}

void dry_run(const Config& given, int ranks, const std::set<std::string>& open) {
  const Config config = on_paper(given, ranks, open);
  RunPlan plan = make_run_plan(config);
  print(dry_run_text(config, plan));
  print(tapes_chosen(given, config, plan, open));
  print(proof_text(config, plan) + "\n");
  require_within(plan, config);
  plan_moves(config, plan);  // which refuses those that there is no memory for
  require_stashes(plan, config.train.swap);
}

}  // namespace mindpipe
