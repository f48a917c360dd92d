#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "paper/known.h"
#include "paper/table.h"

// Writes what cuDNN would plan for every described GPU: plans_on_paper JSON TEXT [DEVICE ...]
extern "C" {
int plans_on_paper = 1;  // the driver in place of the real one works for programs that export this name
}

namespace mindpipe {
namespace {

/// Known plans that are others now, a line each; nothing with another version of the library.
std::string differences(const std::set<std::string>& devices) {
  std::string text, why_not;
  for (const GpuDescription& gpu : described_gpus()) {
    if (!devices.empty() && !devices.contains(gpu.name)) continue;
    const auto planner = make_planner_on_paper(gpu, why_not);
    if (planner->version() / 100 != known_version) return "";
    for (const KnownPlan& known : known_plans()) {
      const PlannedAttention question = question_of(known);
      const std::string found = difference(known, gpu.name, planner->ask(graph_of(question)));
      if (!found.empty()) text += fmt::format("{}, {}: {}\n", gpu.name, question.text(), found);
    }
  }
  return text;
}

}  // namespace
}  // namespace mindpipe

int main(int count, char** arguments) {
  using namespace mindpipe;
  if (count < 3) {
    std::fprintf(stderr, "plans_on_paper JSON TEXT [DEVICE ...]\n");
    return 2;
  }
  std::vector<PaperQuestion> questions = odd_questions();
  for (const std::string& name : bundled_configurations()) {
    const auto more = questions_of_configuration(name);
    questions.insert(questions.end(), more.begin(), more.end());
  }
  const std::set<std::string> devices{arguments + 3, arguments + count};
  std::string why_not;
  const auto planner = make_planner_on_paper(described_gpus().front(), why_not);
  if (!planner) {
    std::fprintf(stderr, "plans: %s\n", why_not.c_str());
    return 1;
  }
  std::ofstream table(arguments[2]);
  table << table_head(planner->version());
  const std::size_t of = questions.size() * (devices.empty() ? described_gpus().size() : devices.size());
  std::size_t done = 0;
  const auto write = [&](const TableRow& row) {
    table << row_text(row) << std::flush;
    if (++done % 50 == 0 || done == of) std::fprintf(stderr, "plans: %zu of %zu\n", done, of);
  };
  std::vector<TableRow> rows;
  for (const GpuDescription& gpu : described_gpus()) {
    if (!devices.empty() && !devices.contains(gpu.name)) continue;
    const auto of_device = ask_all(gpu.name, *make_planner_on_paper(gpu, why_not), questions, write);
    rows.insert(rows.end(), of_device.begin(), of_device.end());
  }
  std::string text = counts_text(rows) + "\nA backward of long sequences, in each way that there is\n\n";
  const AttentionForm llama{.samples = 1,
                            .query_heads = 32,
                            .key_heads = 8,
                            .queries = 8192,
                            .keys = 8192,
                            .width = 128,
                            .causal = true};
  std::vector<PlanPrice> prices;
  for (const GpuDescription& gpu : described_gpus())
    if (devices.empty() || devices.contains(gpu.name))
      for (const PlanPrice& price : prices_of(gpu.name, llama)) prices.push_back(price);
  text += price_text(prices);
  std::ofstream(arguments[1]) << table_json(rows, prices, planner->version());
  table << text;
  std::fputs(text.c_str(), stdout);
  const std::string others = differences(devices);
  if (!others.empty()) std::fprintf(stderr, "plans: not as they were measured:\n%s", others.c_str());
  return others.empty() ? 0 : 1;
}
