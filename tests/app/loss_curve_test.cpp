#include "app/report/loss_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/check.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// A run directory whose metrics.jsonl has this text.
class RunWithMetrics {
 public:
  explicit RunWithMetrics(const std::string& text)
      : path_(fs::temp_directory_path() / ("mindpipe_curve_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
    std::ofstream(path_ / "metrics.jsonl") << text;
  }
  ~RunWithMetrics() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// A loss that falls from 5 to 1 in a straight line.
LossCurve falling(int steps) {
  LossCurve curve;
  for (int i = 0; i < steps; ++i) curve.training.push_back({i + 1, 5 - 4.0 * i / (steps - 1)});
  return curve;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(LossCurve, IsReadFromMetricsAndPassesOverWhatIsCutShort) {
  const RunWithMetrics run(
      "{\"step\": 1, \"loss\": 5.5, \"seconds\": 0.25}\n"
      "{\"step\": 2, \"loss\": null, \"seconds\": 0.25}\n"
      "{\"step\": 3, \"loss\": 4.5, \"seconds\": 0.25, \"validation_loss\": 4.75}\n{\"step\": 4, \"lo");
  const LossCurve curve = read_losses(run.path());
  ASSERT_EQ(curve.training.size(), 2u);
  EXPECT_EQ(curve.training[1].step, 3);
  EXPECT_EQ(curve.training[1].loss, 4.5);
  ASSERT_EQ(curve.validation.size(), 1u);
  EXPECT_EQ(curve.validation[0].loss, 4.75);
  EXPECT_EQ(curve.seconds, 0.75);
}

TEST(LossCurve, OfNoStepIsRefused) {
  const RunWithMetrics run("\n");
  EXPECT_THROW(read_losses(run.path()), Error);
  EXPECT_THROW(read_losses(run.path() + "/none"), Error);
}

TEST(LossCurve, IntervalsHaveTheMeansOfTheirSteps) {
  const auto means = means_of_intervals({{1, 4.0}, {2, 2.0}, {3, 1.0}, {4, 0.0}}, 2);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[0].loss, 3.0);
  EXPECT_EQ(means[0].step, 2);
  EXPECT_EQ(means[1].loss, 0.5);
  EXPECT_EQ(means_of_intervals({{1, 4.0}}, 9).size(), 1u);
}

TEST(LossCurve, AsTextItFallsFromTheTopLeftToTheBottomRight) {
  const std::vector<std::string> lines = lines_of(drawn_as_text(falling(40), 49, 4, false));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], HasSubstr("5.000 |#"));
  EXPECT_THAT(lines[3], HasSubstr("1.000 |#######################"));
  for (int row = 1; row < 4; ++row) EXPECT_GT(lines[row].size(), lines[row - 1].size()) << "it widens below";
  EXPECT_THAT(lines[4], HasSubstr("step 40"));
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 49u);
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x80; })) << line;
  }
  EXPECT_THAT(drawn_as_text(falling(40), 49, 4, true), HasSubstr("█"));
}

TEST(LossCurve, OfOneStepOrOneLossIsDrawnToo) {
  LossCurve curve;
  curve.training.push_back({1, 2.5});
  EXPECT_THAT(drawn_as_text(curve, 60, 5, false), HasSubstr("2.500"));
  EXPECT_THAT(drawn_as_svg(curve, "one"), HasSubstr("</svg>"));
}

TEST(LossCurve, AsAPictureItHasAPointForEachValidationAndNamesTheRun) {
  LossCurve curve = falling(1000);
  curve.validation = {{500, 3.25}, {1000, 1.5}};
  const std::string svg = drawn_as_svg(curve, "runs/<demo> & more");
  EXPECT_THAT(svg, HasSubstr("<title>runs/&lt;demo> &amp; more</title>"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr("validation 1.500"));
  std::size_t dots = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++dots;
  EXPECT_EQ(dots, 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_LT(svg.size(), 20000u) << "three hundred points, however many steps";
}

}  // namespace
}  // namespace mindpipe
