#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/settings.h"
#include "core/check.h"

// Settings that are lists: the groups of an elastic schedule, or auto, and moves of blocks.
namespace mindpipe {
namespace {

using ::testing::HasSubstr;

Node list_of(const std::vector<std::string>& numbers) {
  Node node;
  node.kind = Node::Kind::list;
  for (const std::string& number : numbers) {
    Node item;
    item.kind = Node::Kind::text;
    item.text = number;
    node.items.push_back(item);
  }
  return node;
}
Node text_of(const std::string& text) {
  Node node;
  node.kind = Node::Kind::text;
  node.text = text;
  return node;
}

const Setting& setting(const std::vector<Setting>& settings, std::string_view key) {
  return *std::find_if(settings.begin(), settings.end(),
                       [&](const Setting& one) { return one.key() == key; });
}

TEST(Groups, AreListsOrAuto) {
  Config config;
  const std::vector<Setting> settings = settings_of(config);
  const Setting& backward = setting(settings, "schedule.groups.backward");
  EXPECT_EQ(backward.written(), "auto");
  backward.read(list_of({"4", "8"}));
  EXPECT_EQ(config.schedule.groups, (MicroBatchGroups{{}, {4, 8}}));
  EXPECT_EQ(backward.written(), "[4, 8]");
  backward.read(text_of("auto"));
  EXPECT_TRUE(config.schedule.groups.empty());
  for (const Node& wrong : {list_of({}), list_of({"0"}), list_of({"x"}), text_of("4"), text_of("none")}) {
    try {
      backward.read(wrong);
      FAIL() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      EXPECT_THAT(error.what(), HasSubstr("allowed: auto or a list of whole numbers from 1 to "));
    }
  }
}

TEST(Moves, AreStepsWithTheCutsBehindThem) {
  Config config;
  const std::vector<Setting> settings = settings_of(config);
  const Setting& at = setting(settings, "repartition.at");
  EXPECT_EQ(at.written(), "[]");
  const std::string moves = "[{step: 50, cuts: [4, 9]}, {step: 60, cuts: [5, 9]}]";
  at.read(parse_document(moves, "here", false));
  EXPECT_EQ(config.repartition.at, (std::vector<CutAt>{{50, {4, 9}}, {60, {5, 9}}}));
  EXPECT_EQ(at.written(), moves);
  for (const auto& [wrong, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"[{step: 50}]", "repartition.at.cuts is missing; add it"},
           {"[{cuts: [4]}]", "repartition.at.step is missing; add it"},
           {"[{step: 0, cuts: [1]}]", "repartition.at.step is '0'; allowed: a whole number from 1 to "},
           {"[{stop: 5, cuts: [1]}]",
            "repartition.at.stop is not a setting (a move has step and cuts); did you mean step?"},
           {"5", "repartition.at is '5'; allowed: a list of moves, each {step: ..., cuts: [...]}"}}) {
    try {
      at.read(parse_document(wrong, "here", false));
      ADD_FAILURE() << wrong << " is taken";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(sentence));
    }
  }
}

}  // namespace
}  // namespace mindpipe
