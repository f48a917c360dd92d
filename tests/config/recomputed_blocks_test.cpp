#include "config/chosen_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "config/config.h"
#include "config/open_settings.h"
#include "core/check.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string file = MINDPIPE_SOURCE_DIR "/configs/gpt-tiny.yaml";

TEST(ChosenBlocks, AreNamedByNumber) {
  const ChosenBlocks some = read_config(file, {"train.recompute=[1, 4]"}).train.recompute;
  EXPECT_EQ(some.numbers, (std::vector<int>{1, 4}));
  EXPECT_TRUE(some.has(4));
  EXPECT_FALSE(some.has(2));
  EXPECT_EQ(some.text(), "[1, 4]");
  const ChosenBlocks all = WhichBlocks::block, none;
  EXPECT_TRUE(all.has(7));
  EXPECT_FALSE(none.has(0));
  EXPECT_LT(none, some);
  EXPECT_LT(some, all);
  for (const ChosenBlocks& chosen : {none, some, all}) {
    const Config config = read_config(file, {"train.recompute=" + chosen.text()});
    EXPECT_EQ(config.train.recompute, chosen);
    EXPECT_THAT(to_yaml(config), HasSubstr("  recompute: " + chosen.text() + "\n"));
  }
}

std::string complaint(const std::string& configuration, const std::string& setting) {
  try {
    read_config(configuration, {setting});
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    return error.what();
  }
  return "accepted";
}

TEST(ChosenBlocks, AreRefusedOutOfOrderAndOfASupernet) {
  for (const char* wrong : {"[4, 1]", "[1, 1]", "[]", "[-1]", "[x]", "4"})
    EXPECT_THAT(complaint(file, fmt::format("train.recompute={}", wrong)),
                AllOf(HasSubstr("allowed: auto or none, block, or a list of whole numbers from 0 to "),
                      HasSubstr(", ascending")));
  const std::string supernet = testing::TempDir() + "recomputed_supernet.yaml";
  std::ofstream(supernet)
      << "run: {dir: d}\nseed: 1\ndata: {train: a}\n"
         "model: {kind: supernet, space: {name: one, decoder: {blocks: 2, candidates: [glu]}}}\n";
  EXPECT_THAT(
      complaint(supernet, "train.recompute=[1]"),
      HasSubstr("is [1] and model.kind supernet (its blocks are one of several candidates: none or block)"));
  std::remove(supernet.c_str());
}

}  // namespace
}  // namespace mindpipe
