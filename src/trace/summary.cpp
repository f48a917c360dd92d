#include "trace/summary.h"

#include <fmt/core.h>

#include <algorithm>

#include "comm/grid.h"

namespace mindpipe {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
double percent(double share) { return 100 * share; }

}  // namespace

std::string table_of(const std::vector<TimeSpent>& stages, const std::vector<double>& expected) {
  std::string text =
      "share of the steps' time, in percent\n"
      "                                           | waiting for                                       |\n"
      "stage    forward  backward  update scalars | pipeline    data  tensor    copy scalars    other |  "
      "bubble";
  text += expected.empty() ? "\n" : "  simulated\n";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const TimeSpent& s = stages[i];
    const auto of = [&](std::int64_t time) { return percent(share(time, s.steps)); };
    text += fmt::format(
        "{:<7} {:>8.1f} {:>9.1f} {:>7.1f} {:>7.1f} | {:>8.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>8.1f} | "
        "{:>7.1f}",
        i, of(s.forward), of(s.backward), of(s.update), of(s.scalars), of(s.wait_pipeline), of(s.wait_data),
        of(s.wait_tensor), of(s.wait_copy), of(s.wait_scalars), of(s.steps - s.work() - s.waiting()),
        percent(s.bubble()));
    text += expected.empty() ? "\n" : fmt::format(" {:>10.1f}\n", percent(expected[i]));
  }
  return text;
}

std::string table_of_subnets(const std::vector<TimeSpent>& ranks, const std::vector<SubnetWaits>& waits,
                             int stages) {
  const Coord grid{1, 1, stages, static_cast<int>(std::ssize(ranks)) / stages};
  std::string text = fmt::format(
      "share of the time, in percent{}\n"
      "                                   | waiting for                                   |\n"
      "stage    forward  backward  update | owners   rooms   input    plan  tensor   other\n",
      grid.supernet > 1 ? ", of each lane (lane.stage)" : "");
  for (int i = 0; i < std::ssize(ranks); ++i) {
    const TimeSpent& s = ranks[i];
    const SubnetWaits& w = waits[i];
    const auto of = [&](std::int64_t time) { return percent(share(time, s.steps)); };
    const std::int64_t known = s.work() + w.owner + w.room + w.input + w.plan + s.wait_tensor;
    text += fmt::format(
        "{:<7} {:>8.1f} {:>9.1f} {:>7.1f} | {:>6.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f}\n",
        name_of_program_rank(grid, i), of(s.forward), of(s.backward), of(s.update), of(w.owner), of(w.room),
        of(w.input), of(w.plan), of(s.wait_tensor), of(std::max<std::int64_t>(0, s.steps - known)));
  }
  return text;
}

}  // namespace mindpipe
