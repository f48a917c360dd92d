#include "app/report_end.h"

#include <algorithm>

#include "app/main_verb.h"
#include "core/text.h"

namespace mindpipe {

std::string human_count(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

void EndReport::add_step(double seconds, const StepScalars& scalars) {
  seconds_.push_back(seconds);
  last_loss_ = scalars.loss;
}

double EndReport::median_step() const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
  return sorted[sorted.size() / 2];
}

void EndReport::print_table(bool speaks, double operations_per_token) {
  // One row of times for each stage, brought together by a sum with zeros; of the ranks of a stage the first one speaks.
  const Layout& layout = worker_.layout();
  const Executor::Spent& spent = worker_.executor().spent();
  constexpr int columns = 6;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layout.grid.pipeline) * columns, 0);
  if (layout.coord.tensor == 0 && layout.coord.data == 0) {
    const std::int64_t mine[columns] = {spent.forward, spent.backward, spent.update, spent.scalars, spent.waiting, spent.steps};
    std::copy_n(mine, columns, rows.begin() + layout.coord.pipeline * columns);
  }
  worker_.sum_over_grid(rows);
  if (!speaks || seconds_.empty()) return;

  const double tokens = static_cast<double>(layout.tokens()), median = median_step();
  std::string text = fmt::format("\n{} steps, last loss {:.4f}; median step {}: {} tokens/s, {:.1f} GFLOP/s by 6N + 6Lhq\n\n", seconds_.size(), last_loss_, human_seconds(median),
                                 human_count(tokens / median), operations_per_token * tokens / median / 1e9);
  text += "stage    forward  backward    update   scalars   waiting     other   share of the steps' time\n";
  double waiting = 0, all = 0;
  for (int stage = 0; stage < layout.grid.pipeline; ++stage) {
    const std::int64_t* row = &rows[static_cast<std::size_t>(stage) * columns];
    const double steps = std::max<double>(1, static_cast<double>(row[5]));
    const std::int64_t other = row[5] - row[0] - row[1] - row[2] - row[3] - row[4];
    text += fmt::format("{:<5}", stage);
    for (std::int64_t t : {row[0], row[1], row[2], row[3], row[4], other}) text += fmt::format("{:>9.1f}%", 100.0 * static_cast<double>(t) / steps);
    text += "\n";
    waiting += static_cast<double>(row[4]), all += steps;
  }
  if (layout.grid.pipeline > 1 && waiting > 0.25 * all)
    text += fmt::format("note: stages wait {:.0f} % of the time; more micro-batches (a smaller train.micro_batch or a larger train.batch) shrink the bubble\n", 100 * waiting / all);
  const std::string traffic = worker_.ledger().table();
  if (worker_.ledger().total().calls > 0) text += "\ntraffic of rank 0\n" + traffic;
  print(text);
}

}  // namespace mindpipe
