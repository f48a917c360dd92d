#include "app/verbs/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpus/files.h"
#include "corpus/import.h"
#include "corpus/inspect.h"

namespace mindpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(Data, WhatIsImportedCanBeInspected) {
  const Folder folder;
  write_file(folder / "in.jsonl", "{\"body\": \"one\"}\n{\"body\": \"\"}\n{\"body\": \"three\"}\n");
  ImportRequest request{.inputs = {folder / "in.jsonl"}, .output = folder / "out.bin"};
  request.rules.key = "body";
  request.rules.end_of_text = true;
  EXPECT_THAT(import_files(request), EndsWith(" 10 tokens in 2 documents from " + (folder / "in.jsonl") +
                                              " (1 without text left out); the vocabulary is 257"));
  const std::string lines = inspect_file(folder / "out", 5);
  EXPECT_THAT(lines, HasSubstr("out.bin: uint16, 10 tokens, 2 sequences, 2 documents\n"));
  EXPECT_THAT(lines, HasSubstr("tokens 101 to 256 among the first 10\n"));
  EXPECT_THAT(lines, HasSubstr("as text: one<end>t\n"));
  EXPECT_THAT(lines, HasSubstr("tokenizer bytes (SHA-256 "));
}

TEST(Data, AnImportWithoutTextLeavesNoFile) {
  const Folder folder;
  write_file(folder / "in.txt", "");
  expect_error(Exit::bad_data, "in.txt: the file has no text",
               [&] { import_files({.inputs = {folder / "in.txt"}, .output = folder / "out"}); });
  EXPECT_FALSE(std::filesystem::exists(folder / "out.bin"));
}

TEST(Data, LinesAreEncodedAndDecoded) {
  const std::unique_ptr<Tokenizer> bytes = load_tokenizer("bytes");
  std::istringstream in("ab\n\nc");
  std::ostringstream ids, text;
  encode_lines(in, ids, *bytes, false);
  EXPECT_EQ(ids.str(), "97 98\n\n99\n");
  std::istringstream back(ids.str());
  decode_lines(back, text, *bytes);
  EXPECT_EQ(text.str(), "ab\n\nc\n");
  std::istringstream wrong("1 2\n3 x4\n");
  expect_error(Exit::bad_data, "line 2: 'x4' is no id", [&] { decode_lines(wrong, text, *bytes); });
}

TEST(Data, SumsAreMadeFromASeed) {
  const Folder folder;
  EXPECT_THAT(synthesize("arithmetic", folder / "a", 3, 9),
              EndsWith("a: 3 documents of 16 lines from seed 9"));
  synthesize("synthetic:arithmetic", folder / "b", 3, 9);
  synthesize("arithmetic", folder / "c", 3, 10);
  EXPECT_EQ(read_file(folder / "a.bin"), read_file(folder / "b.bin"));
  EXPECT_NE(read_file(folder / "a.bin"), read_file(folder / "c.bin"));
  expect_error(Exit::usage, "there is no corpus 'poems' to make",
               [&] { synthesize("poems", folder / "d", 1, 1); });
  expect_error(Exit::usage, "0 documents (there must be 1 or more)",
               [&] { synthesize("arithmetic", folder / "d", 0, 1); });
}

}  // namespace
}  // namespace mindpipe
