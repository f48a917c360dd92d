#include "paper/table.h"

#include <chrono>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "device_description.h"

namespace mindpipe {
namespace {

constexpr double mib = 1024.0 * 1024;

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// Who computes it in a run.
std::string serves(const TableRow& row) {
  if (row.asked.is_asked && row.answer.is_planned) return "cuDNN";
  return row.asked.question.width <= 256 ? "our flash kernels" : "refused";
}

}  // namespace

std::string engine_number(const std::string& engine) {
  std::string digits;
  for (std::size_t i = 3; i < engine.size() && engine[i] != '_'; ++i) digits += engine[i];
  return digits;
}

std::vector<TableRow> ask_all(const std::string& device, AttentionPlanner& planner,
                              const std::vector<PaperQuestion>& questions,
                              const std::function<void(const TableRow&)>& answered) {
  std::vector<TableRow> rows;
  std::map<PlannedAttention, TableRow> known;  // configurations ask some alike
  for (const PaperQuestion& asked : questions) {
    const auto at = known.find(asked.question);
    TableRow row = at != known.end() ? at->second : TableRow{device, asked, {}};
    row.asked = asked;
    row.asked_before = at != known.end();
    if (!row.asked_before && asked.withheld.empty()) {
      const auto start = std::chrono::steady_clock::now();
      row.answer = planner.ask(graph_of(asked.question));
      row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      known.emplace(asked.question, row);
    } else if (!row.asked_before) {
      row.answer.refusal = "not asked: " + asked.withheld;
    }
    rows.push_back(std::move(row));
    answered(rows.back());
  }
  return rows;
}

std::size_t workspace_of(const TableRow& row) {
  return row.asked.question.lengths_bytes() + row.answer.bytes;
}

std::string table_json(const std::vector<TableRow>& rows, const std::vector<PlanPrice>& prices, int version) {
  nlohmann::ordered_json table{{"cudnn", version_text(version)}, {"plans", nlohmann::ordered_json::array()}};
  for (const TableRow& row : rows) {
    const PlannedAttention& c = row.asked.question;
    nlohmann::ordered_json one{{"device", row.device},
                               {"from", row.asked.from},
                               {"direction", c.backward ? "backward" : "forward"},
                               {"samples", c.samples},
                               {"query_heads", c.query_heads},
                               {"key_heads", c.key_heads},
                               {"queries", c.queries},
                               {"keys", c.keys},
                               {"width", c.width},
                               {"causal", c.causal},
                               {"padded", c.padded},
                               {"asked_by_runs", row.asked.is_asked},
                               {"seconds", row.seconds}};
    if (row.answer.is_planned) {
      one["engine"] = row.answer.engine;
      one["workspace"] = workspace_of(row);
    } else {
      one["refusal"] = row.answer.refusal;
    }
    one["formula"] = c.formula_bytes();
    one["serves"] = serves(row);
    table["plans"].push_back(std::move(one));
  }
  for (const PlanPrice& price : prices)
    table["prices"].push_back({{"device", price.device},
                               {"question", price.question},
                               {"way", price.way},
                               {"workspace", price.bytes},
                               {"seconds", price.seconds}});
  return table.dump(1) + "\n";
}

std::string table_head(int version) {
  return fmt::format("Plans of cuDNN {} on paper\n\n{:<6} {:>6} {:>12} {:>9} {:>7}  {}\n",
                     version_text(version), "device", "engine", "workspace", "formula", "seconds",
                     "question; who asks it; who serves it");
}

std::string row_text(const TableRow& row) {
  const PlannedAttention& c = row.asked.question;
  const bool planned = row.answer.is_planned;
  std::string text =
      fmt::format("{:<6} {:>6} {:>12} {:>9} {:>7.2f}  {}; {}{}; {}\n", row.device,
                  planned ? engine_number(row.answer.engine) : "-",
                  planned ? fmt::format("{:.2f} MiB", static_cast<double>(workspace_of(row)) / mib) : "-",
                  fmt::format("{:.2f}", static_cast<double>(c.formula_bytes()) / mib), row.seconds, c.text(),
                  row.asked.from, row.asked.is_asked ? "" : " (no run asks it)", serves(row));
  if (!planned)
    text +=
        fmt::format("{:>21} {}{}\n", "", row.asked.withheld.empty() ? "refused: " : "", row.answer.refusal);
  return text;
}

std::string counts_text(const std::vector<TableRow>& rows) {
  struct Count {
    int asked = 0, planned = 0;
    double seconds = 0;
    std::size_t most = 0;
  };
  std::map<std::string, Count> counts;
  for (const TableRow& row : rows) {
    Count& count = counts[row.device];
    count.asked += row.asked.is_asked;
    count.planned += row.asked.is_asked && row.answer.is_planned;
    count.seconds += row.asked_before ? 0 : row.seconds;
    if (row.answer.is_planned) count.most = std::max(count.most, workspace_of(row));
  }
  std::string text = "\n";
  for (const auto& [device, count] : counts)
    text += fmt::format(
        "{}: {} of {} questions that runs ask have a fused plan; the largest takes {:.2f} MiB; {:.0f} s\n",
        device, count.planned, count.asked, static_cast<double>(count.most) / mib, count.seconds);
  return text;
}

std::vector<PlanPrice> prices_of(const std::string& device, const AttentionForm& form) {
  const DeviceDescription d = describe_device(device);
  const AttentionCall call = call_of(form);
  const PlannedAttention whole(call, true);
  const double pairs = static_cast<double>(form.samples * form.query_heads * form.queries) *
                       static_cast<double>(form.keys) * (form.causal ? 0.5 : 1),
               product = 2 * pairs * static_cast<double>(form.width),
               probabilities = static_cast<double>(form.samples * form.query_heads * form.queries) *
                               static_cast<double>(form.keys) * 2,
               linear = static_cast<double>(form.samples * form.query_heads * form.queries) *
                        (4.0 * static_cast<double>(form.width) + 4);
  std::vector<PlanPrice> prices;
  const auto add = [&](const std::string& way, double bytes, double products, double traffic, int launches) {
    prices.push_back({device, whole.text(), way, bytes,
                      products * product / d.flops_bf16 + traffic / d.bytes + launches * d.launch});
  };
  // A deterministic backward writes the gradient of the probabilities and reads it again.
  for (const bool in_pieces : {false, true}) {
    const AttentionLimit limit{.most = in_pieces ? AttentionLimit{}.most : std::size_t{1} << 50};
    const AttentionPieces pieces = pieces_of(call, true, limit).value();
    const int count = pieces.count();
    add(count == 1 ? "one plan" : fmt::format("{} pieces", count),
        static_cast<double>(PlannedAttention(call, true, pieces).formula_bytes()), 5,
        2 * probabilities * (form.causal ? 0.5 : 1), 3 * count);
  }
  if (const GpuDescription* gpu = find_gpu(device); gpu != nullptr && gpu->capability == 90)
    add("the ordered path of cuDNN 9.25, for sm_90", linear, 5, 2 * linear, 3);
  add("our own kernels, two passes, at cuDNN's rate", 0, 7, 0, 2);
  return prices;
}

std::string price_text(const std::vector<PlanPrice>& prices) {
  std::string text, device;
  for (const PlanPrice& price : prices) {
    if (price.device != device)
      text += fmt::format("{} on {}, by the description's rates:\n  {:<44} {:>12} {:>10}\n", price.question,
                          price.device, "way", "workspace", "time");
    device = price.device;
    text +=
        fmt::format("  {:<44} {:>8.1f} MiB {:>7.2f} ms\n", price.way, price.bytes / mib, price.seconds * 1e3);
  }
  return text;
}

}  // namespace mindpipe
