#include "app/report/front_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "app/report/drawing.h"
#include "core/text.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Six networks: four on the front, of which each panel's own front has some; the best two by loss.
SearchFound six_networks() {
  SearchFound found;
  found.names = {{"loss", ""}, {"parameters", ""}, {"latency", "s"}};
  const std::vector<Objectives> objectives = {{3.0, 60e6, 2e-3}, {2.5, 65e6, 3e-3}, {2.25, 70e6, 2.5e-3},
                                              {3.5, 75e6, 1e-3}, {4.0, 80e6, 4e-3}, {2.75, 70e6, 3.5e-3}};
  for (const Objectives& row : objectives)
    found.scores.push_back(
        {std::ssize(found.scores), {1, 0, static_cast<std::uint8_t>(found.scores.size())}, row});
  found.front = {0, 1, 2, 3};
  found.best = {2, 1};
  return found;
}

/// The data of each path of a class, in order.
std::vector<std::string> paths_of(const std::string& svg, const std::string& name) {
  const std::string opening = "<path class=\"" + name + "\" d=\"";
  std::vector<std::string> paths;
  for (std::size_t at = svg.find(opening); at != std::string::npos; at = svg.find(opening, at + 1)) {
    const std::size_t begin = at + opening.size();
    paths.push_back(svg.substr(begin, svg.find('"', begin) - begin));
  }
  return paths;
}

struct MarkAt {
  double x, y;
};
/// Where the marks of a path lie.
std::vector<MarkAt> marks_of(const std::string& path) {
  std::vector<MarkAt> places;
  for (std::size_t at = path.find('M'); at != std::string::npos; at = path.find('M', at + 1)) {
    MarkAt place{};
    EXPECT_EQ(std::sscanf(path.c_str() + at, "M%lf %lf", &place.x, &place.y), 2) << path;
    places.push_back(place);
  }
  return places;
}

TEST(FrontFiles, TheTableHasTheFrontByLossAndTheBestByTheirNumber) {
  EXPECT_EQ(front_as_csv(six_networks()),
            "best,id,loss,parameters,latency (s),choice\n"
            "1,2,2.25,70000000,0.0025,\"1, 0, 2\"\n"
            "2,1,2.5,65000000,0.003,\"1, 0, 1\"\n"
            ",0,3,60000000,0.002,\"1, 0, 0\"\n"
            ",3,3.5,75000000,0.001,\"1, 0, 3\"\n");
}

TEST(FrontFiles, ThePictureHasAPanelForEachObjectiveWithAllMarks) {
  const std::string svg = front_as_svg(six_networks(), "runs/<demo> & more");
  // The first of each class explains it above the panels.
  const auto scores = paths_of(svg, "score"), front = paths_of(svg, "front"), best = paths_of(svg, "best");
  ASSERT_EQ(scores.size(), 3u);
  ASSERT_EQ(front.size(), 3u);
  ASSERT_EQ(best.size(), 3u);
  for (const std::size_t panel : {1u, 2u}) {
    const std::vector<MarkAt> all = marks_of(scores[panel]), of_front = marks_of(front[panel]);
    ASSERT_EQ(all.size(), 6u);
    ASSERT_EQ(of_front.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(of_front[i].x, all[i].x) << "the front lies on the scores";
    const std::vector<MarkAt> of_best = marks_of(best[panel]);
    ASSERT_EQ(of_best.size(), 2u);
    EXPECT_EQ(of_best[0].y, all[2].y);
    EXPECT_EQ(of_best[1].x, all[1].x);
    for (const MarkAt& place : all) {
      EXPECT_LE(place.y, all[2].y) << "the lowest loss is the lowest mark";
      EXPECT_GE(place.y, all[4].y);
      EXPECT_GT(place.x, 66);
      EXPECT_LT(place.x, 386);
    }
    EXPECT_NEAR(all[0].y - all[4].y, 2 * (all[2].y - all[5].y), 0.3) << "distances are those of losses";
  }
  const std::vector<MarkAt> first = marks_of(scores[1]), second = marks_of(scores[2]);
  EXPECT_EQ(first[2].x, first[5].x) << "as many parameters";
  EXPECT_LT(first[0].x, first[1].x);
  EXPECT_LT(second[3].x, second[0].x);
  EXPECT_THAT(svg, HasSubstr("<title>runs/&lt;demo> &amp; more</title>"));
  EXPECT_THAT(svg, HasSubstr("6 scored"));
  EXPECT_THAT(svg, HasSubstr("front: 4"));
  EXPECT_THAT(svg, HasSubstr("best: 2"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
}

TEST(FrontFiles, TheLineOfAPanelJoinsWhatNobodyBeatsInItsTwoObjectives) {
  const auto stairs = paths_of(front_as_svg(six_networks(), "x"), "stairs");
  ASSERT_EQ(stairs.size(), 3u);
  const auto steps = [](const std::string& path) { return std::count(path.begin(), path.end(), 'H'); };
  EXPECT_EQ(steps(stairs[1]), 2) << "parameters: 60, 65 and 70 million; who has 75 loses to all";
  EXPECT_EQ(steps(stairs[2]), 2) << "latency: 1, 2 and 2.5 ms";
}

TEST(FrontFiles, AxesSayTheirNameAndUnitAndHaveShortNumbers) {
  const std::string svg = front_as_svg(six_networks(), "x");
  EXPECT_THAT(svg, HasSubstr(">parameters (million)</text>"));
  EXPECT_THAT(svg, HasSubstr(">latency (ms)</text>"));
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
  for (const char* number : {">60<", ">70<", ">80<", ">1<", ">2<", ">3<", ">4<", ">2.5<", ">3.5<"})
    EXPECT_THAT(svg, HasSubstr(number));
  SearchFound found = six_networks();
  found.names[2].unit = "bytes";
  for (ScoredNetwork& score : found.scores) score.objectives[2] *= 3e12;
  EXPECT_THAT(front_as_svg(found, "x"), HasSubstr(">latency (Gbytes)</text>"));
}

TEST(FrontFiles, LittleOrNothingToShowIsDrawnToo) {
  SearchFound one = six_networks(), equal = six_networks(), none = six_networks(), zero = six_networks();
  one.scores.resize(1);
  one.front = one.best = {0};
  equal.scores[0].objectives = {2, 5e6, 1e-3};
  for (ScoredNetwork& score : equal.scores) score.objectives = equal.scores[0].objectives;
  for (ScoredNetwork& score : zero.scores) score.objectives = {0, 0, 0};
  const double no_number = std::numeric_limits<double>::quiet_NaN();
  for (ScoredNetwork& score : none.scores) score.objectives[0] = no_number;
  none.front = none.best = {};
  SearchFound nothing = none;
  nothing.scores = {};
  for (const SearchFound& found : {one, equal, zero, none, nothing}) {
    const std::string svg = front_as_svg(found, "x");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_EQ(paths_of(svg, "score").size(), found.front.empty() ? 1u : 3u);
    EXPECT_EQ(paths_of(svg, "axis").size(), 2u);
  }
  EXPECT_THAT(front_as_svg(none, "x"), HasSubstr(">0 of 6<"));
  SearchFound some = six_networks();
  some.scores[5].objectives[0] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(front_as_svg(some, "x"), HasSubstr(">5 of 6<"));
}

TEST(FrontFiles, ALongTitleEndsWhereThePictureDoes) {
  std::string title;
  for (int i = 0; i < 40; ++i) title += "ä/";
  for (const std::string& more : {title, title + "b", title + "bc"}) {
    const std::string svg = front_as_svg(six_networks(), more);
    EXPECT_TRUE(is_utf8(svg)) << "no letter is cut in two";
    EXPECT_THAT(svg, HasSubstr(">…"));
  }
}

TEST(Axes, HaveAFewTicksWhoseLabelsDiffer) {
  for (const double start : {0.0, 5.23, -17.0, 1234.5})
    for (double length = 1e-4; length < 1e8; length *= 1.37)
      for (const int least : {2, 4}) {
        const double tick = tick_of(length, least), count = length / tick;
        EXPECT_GE(count, least * 0.999) << length;
        EXPECT_LE(count, least * 2.501) << length;
        std::set<std::string> labels;
        const Panel panel{0, 0, 100, 100, {start, start + length}, {0, 1}};
        const std::string text = numbers_below(panel, tick);
        std::size_t ticks = 0;
        for (std::size_t at = text.find("\">"); at != std::string::npos; at = text.find("\">", at + 1)) {
          labels.insert(text.substr(at, text.find('<', at) - at));
          ++ticks;
        }
        EXPECT_EQ(labels.size(), ticks) << start << ", " << length;
        EXPECT_GE(ticks, static_cast<std::size_t>(least));
      }
}

}  // namespace
}  // namespace mindpipe
