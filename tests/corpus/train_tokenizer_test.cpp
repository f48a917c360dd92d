#include "corpus/train_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "corpus/files.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

TEST(TrainedTokenizers, AreTheSameForAnyNumberOfThreadsAndFiles) {
  const Folder folder;
  const std::string text = read_file(MINDPIPE_SOURCE_DIR "/data/alice.txt");
  std::string many;
  for (int i = 0; i < 20; ++i) many += text;  // more than one piece of a mebibyte
  write_file(folder / "alice.txt", many);
  const auto trained = [&](const std::string& name, int threads) {
    const TrainTokenizerRequest request{.inputs = {folder / "alice.txt"},
                                        .output = folder / name,
                                        .rules = {.vocabulary = 656},
                                        .threads = threads};
    EXPECT_THAT(train_tokenizer(request), HasSubstr("656 tokens, 400 merges"));
    return read_file(folder / name);
  };
  const std::string alone = trained("one.json", 1);
  EXPECT_EQ(trained("four.json", 4), alone);
}

TEST(TrainedTokenizers, ReadTheTextsOfEveryFormat) {
  const Folder folder;
  write_file(folder / "a.jsonl",
             "{\"text\": \"xyxy xyxy\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"xyxy\"}]}\n");
  write_file(folder / "b.tsv", "xyxy\txyxy\n");
  for (const char* name : {"a.jsonl", "b.tsv"}) {
    const std::string made = folder / (std::string(name) + ".json");
    train_tokenizer(
        {.inputs = {folder / name}, .output = made, .rules = {.vocabulary = 258, .least_count = 2}});
    const auto tokenizer = load_tokenizer(made);
    EXPECT_TRUE(tokenizer->id_of("xyxy")) << name;
    EXPECT_FALSE(tokenizer->id_of("text")) << name;
  }
}

TEST(TrainedTokenizers, AreRefusedWithASentence) {
  const Folder folder;
  write_file(folder / "empty.txt", "");
  write_file(folder / "bad.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n");
  const auto train = [&](const std::string& input, const std::string& output) {
    train_tokenizer({.inputs = {folder / input}, .output = folder / output, .rules = {.vocabulary = 300}});
  };
  expect_error(Exit::bad_data, "there is no text to train on", [&] { train("empty.txt", "a.json"); });
  expect_error(Exit::bad_data, "bad.jsonl: line 2: there is no key 'text' (the keys are: body)",
               [&] { train("bad.jsonl", "b.json"); });
  write_file(folder / "bad.tsv", "a\tb\nno tab\n");
  expect_error(Exit::bad_data, "bad.tsv: line 2: there is no tab", [&] { train("bad.tsv", "c.json"); });
  write_file(folder / "there.json", "{}");
  write_file(folder / "good.txt", "good text");
  expect_error(Exit::cannot_create, "there.json", [&] { train("good.txt", "there.json"); });
}

}  // namespace
}  // namespace mindpipe
