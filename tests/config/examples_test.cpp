#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "config/config.h"
#include "core/check.h"
#include "spaces.h"

namespace mindpipe {
namespace {

/// Every configuration that we ship reads, and its resolved form reads back to the same.
TEST(Examples, AllRead) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // from which they name files
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

TEST(Examples, OfSpacesAllRead) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);
  std::map<std::string, Space> spaces;
  for (const auto& entry : std::filesystem::directory_iterator("configs/spaces")) {
    SCOPED_TRACE(entry.path());
    Space& space = spaces[entry.path().stem()] = space_from(entry.path());
    EXPECT_EQ(space.name, entry.path().stem() == "nlp-c3" ? "nlp.c3" : entry.path().stem());
    EXPECT_EQ(space_from(space.written), space);
  }
  EXPECT_EQ(spaces.size(), 7u);
  const Space word = space_from("nlp.c3"), &file = spaces.at("nlp-c3");
  EXPECT_EQ(file.name, word.name);
  EXPECT_EQ(file.encoder, word.encoder);
  EXPECT_EQ(file.decoder, word.decoder);
  EXPECT_TRUE(spaces.at("nlp-small").has_encoder());
  EXPECT_FALSE(spaces.at("text-small").has_encoder());
  for (const char* cells : {"cells-small", "evolved-transformer"}) EXPECT_TRUE(spaces.at(cells).has_cells());
  EXPECT_EQ(spaces.at("evolved-transformer").layers(), 3 * 5 + 4 * 6);
  for (const std::vector<Candidate>& block : spaces.at("transformers").decoder)
    for (const Candidate& candidate : block)
      EXPECT_TRUE(candidate.kind == CandidateKind::attention || candidate.kind == CandidateKind::mlp);
}

}  // namespace
}  // namespace mindpipe
