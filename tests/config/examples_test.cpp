#include <gtest/gtest.h>

#include <filesystem>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {
namespace {

/// Every configuration that we ship reads, and its resolved form reads back to the same.
TEST(Examples, AllRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MINDPIPE_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path());
    ++files;
    try {
      Config config = read_config(entry.path(), {});
      EXPECT_EQ(config.run.dir, "runs/" + entry.path().stem().string());
      EXPECT_EQ(resolve(config), config);
      EXPECT_EQ(read_config(entry.path(), {"train.steps=5"}).train.steps, 5) << "to try it out";
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GE(files, 4);
}

TEST(Examples, HaveTheShapesThatTheyName) {
  const gpt::Settings llama = read_config(MINDPIPE_SOURCE_DIR "/configs/llama-8b.yaml", {}).model.gpt;
  EXPECT_EQ(llama.width / llama.heads, 128);
  EXPECT_EQ(llama.key_value_heads, 8);
  const gpt::Settings gpt2 = read_config(MINDPIPE_SOURCE_DIR "/configs/gpt2-1.5b.yaml", {}).model.gpt;
  EXPECT_EQ(gpt2.mlp_width, 6400);
  EXPECT_EQ(gpt2.width / gpt2.heads, 64);
}

}  // namespace
}  // namespace mindpipe
