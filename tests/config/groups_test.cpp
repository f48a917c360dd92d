#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/settings.h"
#include "core/check.h"

// The groups of an elastic schedule in a file: lists, or auto.
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

}  // namespace
}  // namespace mindpipe
