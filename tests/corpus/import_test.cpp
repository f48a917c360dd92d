#include "corpus/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>
#include <nlohmann/json.hpp>

#include "corpus/answers.h"
#include "corpus/byte_stream.h"
#include "corpus/corpus.h"
#include "corpus/files.h"
#include "corpus/import_reader.h"
#include "corpus/inspect.h"
#include "corpus/raw_tokens.h"
#include "corpus/token_origin.h"
#include "corpus/token_writer.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void write_gzip(const std::string& path, const std::string& text, const char* mode = "wb") {
  gzFile file = gzopen(path.c_str(), mode);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}
std::string as_zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}
std::string read_all(const std::string& path, std::size_t piece) {
  const auto bytes = open_bytes(path);
  std::string text, some(piece, '\0');
  for (std::size_t count; (count = bytes->read(some)) > 0;) text += some.substr(0, count);
  return text;
}

/// Lines that do not pack to nothing.
std::string long_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += fmt::format("line {} has {}\n", i, std::int64_t{i} * i % 7919);
  return text;
}

std::vector<std::string> documents_of(const std::string& prefix) {
  const TokenFile file(prefix);
  std::vector<std::string> documents;
  for (std::int64_t d = 0; d < file.count(); ++d) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(d)));
    file.read(d, 0, file.length(d), tokens.data());
    documents.push_back(printable(tokens));
  }
  return documents;
}

TEST(ByteStream, UnpacksSeveralPartsInPiecesOfAnySize) {
  const Folder folder;
  const std::string text = long_text(20000);
  write_file(folder / "plain", text);
  write_gzip(folder / "a.gz", text);
  write_gzip(folder / "a.gz", "behind", "ab");  // a second member
  write_file(folder / "a.zst", as_zstd(text) + as_zstd("behind"));
  for (const std::size_t piece : {std::size_t{7}, std::size_t{4096}, text.size() + 100}) {
    EXPECT_EQ(read_all(folder / "plain", piece), text);
    EXPECT_EQ(read_all(folder / "a.gz", piece), text + "behind");
    EXPECT_EQ(read_all(folder / "a.zst", piece), text + "behind");
  }
}

TEST(ByteStream, RefusesWhatIsCutShortOrDamaged) {
  const Folder folder;
  const std::string text = long_text(20000);
  write_gzip(folder / "a.gz", text);
  const std::string gzip = read_file(folder / "a.gz"), zstd = as_zstd(text);
  for (const std::string& packed : {gzip, zstd}) {
    write_file(folder / "cut", packed.substr(0, packed.size() / 2));
    expect_error(Exit::bad_data, "cut: cannot be unpacked after", [&] { read_all(folder / "cut", 4096); });
    std::string damaged = packed;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    write_file(folder / "damaged", damaged);
    expect_error(Exit::bad_data, "damaged: cannot be unpacked after",
                 [&] { read_all(folder / "damaged", 4096); });
  }
}

TEST(Import, ReadsFilesAndFoldersByTheirNames) {
  const Folder folder;
  std::filesystem::create_directories(folder / "in/deep");
  write_file(folder / "in/b.txt", "b");
  write_file(folder / "in/picture.png", "no text");
  write_file(folder / "in/deep/c.jsonl.zst", as_zstd("{\"text\":\"c\"}\n{\"text\":\"d\"}\n"));
  write_gzip(folder / "z.txt.gz", "z");
  import_files({.inputs = {folder / "z.txt.gz", folder / "in"}, .output = folder / "out"});
  EXPECT_THAT(documents_of(folder / "out"), ElementsAre("z", "b", "c", "d"));
  const auto origin = read_origin(folder / "out");
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->tokenizer, "bytes");
  EXPECT_EQ(origin->documents, 4);
  EXPECT_EQ(origin->tokens, 4);
  EXPECT_EQ(origin->vocabulary, 256);
}

TEST(Import, HasTheSameBitsOnAnyNumberOfThreads) {
  const Folder folder;
  write_file(folder / "long.txt", long_text(200000));  // several pieces
  std::string lines;
  for (int i = 0; i < 60000; ++i) lines += fmt::format("{{\"text\":\"document {}\"}}\n", i);
  write_file(folder / "many.jsonl", lines);
  for (const int threads : {1, 4})
    import_files({.inputs = {folder / "long.txt", folder / "many.jsonl"},
                  .output = folder / std::to_string(threads),
                  .threads = threads});
  EXPECT_EQ(read_file(folder / "1.bin"), read_file(folder / "4.bin"));
  EXPECT_EQ(read_file(folder / "1.idx"), read_file(folder / "4.idx"));
  const TokenFile file(folder / "1");
  ASSERT_EQ(file.count(), 60001);
  EXPECT_EQ(file.length(0), std::ssize(long_text(200000)));
}

/// The ids of all documents of a pair.
std::vector<std::int32_t> ids_of_all(const std::string& prefix) {
  const TokenFile file(prefix);
  std::vector<std::int32_t> all;
  for (std::int64_t d = 0; d < file.count(); ++d) {
    const std::size_t before = all.size();
    all.resize(before + static_cast<std::size_t>(file.length(d)));
    file.read(d, 0, file.length(d), all.data() + before);
  }
  return all;
}
const std::string tokenizers = MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers/";

TEST(Import, GivesPiecesOfALongTextTheTokensOfTheWhole) {
  const Folder folder;
  std::string line, lines;
  for (int i = 0; i < 120000; ++i)
    line += fmt::format("{}a word {}", i % 3 == 0 ? " " : "", std::int64_t{i} * i % 7919);
  for (int i = 0; i < 40000; ++i)
    lines += fmt::format("Line {}:\n  with a word.\n\n", std::int64_t{i} * i % 7919);
  write_file(folder / "line.txt", line);
  write_file(folder / "lines.txt", lines);
  write_file(folder / "in.jsonl", nlohmann::json{{"text", line}}.dump() + "\n");
  for (const char* name :
       {"gpt2.json", "gpt4.json", "llama3.json", "words.json", "metaspace.json", "unigram.model"})
    for (const char* input : {"line.txt", "lines.txt", "in.jsonl"}) {
      const std::string& text = input == std::string("lines.txt") ? lines : line;
      ASSERT_GT(text.size(), 2 * TextCuts::piece);
      const std::string prefix = folder / (std::string(name) + input);
      import_files({.inputs = {folder / input}, .output = prefix, .tokenizer = tokenizers + name});
      EXPECT_TRUE(ids_of_all(prefix) ==
                  load_tokenizer(tokenizers + name)->encoder()->encode(text, SpecialText::plain))
          << name << ", " << input;
      EXPECT_EQ(TokenFile(prefix).count(), 1);
    }
}

TEST(Import, RefusesWhatItWouldHaveToHoldInMemory) {
  const Folder folder;
  const auto refuse = [&](const std::string& name, const std::string& text, const std::string& part,
                          const ImportRules& rules = {}, const std::string& format = "auto") {
    write_file(folder / name, text);
    expect_error(Exit::bad_data, part, [&] {
      import_files({.inputs = {folder / name},
                    .output = folder / "out",
                    .format = format,
                    .tokenizer = tokenizers + "gpt2.json",
                    .rules = rules});
    });
  };
  const std::string letters(5 << 20, 'a');
  const std::string no_cut = "one document has more than 4 MiB and no line or word";
  refuse("a.txt", letters, "a.txt: " + no_cut);
  refuse("a.jsonl", "{\"text\":\"b\"}\n{\"text\":\"" + letters + "\"}\n", "a.jsonl: line 2: " + no_cut);
  refuse("a.tsv", letters + "\tb\n", "a.tsv: line 1: the line has more than 4 MiB, and a pair is one sample");
  ImportRules answers;
  answers.answers = true;
  refuse("b.jsonl", "{\"prompt\":\"b\",\"answer\":\"" + letters + "\"}\n",
         "b.jsonl: line 1: the line has more than 4 MiB, and a conversation is one sample", answers);
  refuse("c.jsonl", "{\"text\":\"" + std::string(17 << 20, ' ') + "\"}\n",
         "c.jsonl: line 1 is longer than 16 MiB");
  std::string paragraph;
  while (paragraph.size() <= 16 << 20) paragraph += "a line of many\n";
  refuse("d.txt", "first\n\n" + paragraph, "the paragraph from line 3 on has more than 16 MiB", {},
         "paragraphs");
}

TEST(Import, MakesTwoTokenFilesOfPairs) {
  const Folder folder;
  write_file(folder / "in.tsv", "one\teins\r\n\ntwo\tzwei\n");
  import_files({.inputs = {folder / "in.tsv"}, .output = folder / "out"});
  EXPECT_THAT(documents_of(folder / "out.source"), ElementsAre("one", "two"));
  EXPECT_THAT(documents_of(folder / "out.target"), ElementsAre("eins", "zwei"));
  write_file(folder / "wrong.tsv", "one\teins\ntwo zwei\n");
  expect_error(Exit::bad_data, "wrong.tsv: line 2: there is no tab",
               [&] { import_files({.inputs = {folder / "wrong.tsv"}, .output = folder / "other"}); });
}

template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

TEST(Import, TakesTokensOfOtherProgramsAsTheyAre) {
  const Folder folder;
  const std::vector<std::uint16_t> tokens{104, 105, 256, 111, 107, 256};
  std::vector<std::int32_t> head(256, 0);
  head[0] = 20240520;
  head[1] = 1;
  head[2] = 6;
  write_file(folder / "nano.bin", bytes_of_numbers(tokens));
  write_file(folder / "llm.bin", bytes_of_numbers(head) + bytes_of_numbers(tokens));
  std::string dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }";
  dictionary.resize(117, ' ');
  dictionary += '\n';
  write_file(folder / "array.npy",
             "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + dictionary +
                 bytes_of_numbers(std::vector<std::int32_t>(tokens.begin(), tokens.end())));
  for (const std::string name : {"nano.bin", "llm.bin", "array.npy"}) {
    import_files({.inputs = {folder / name}, .output = folder / ("of-" + name + "-")});
    EXPECT_THAT(documents_of(folder / ("of-" + name + "-")), ElementsAre("hi<end>ok<end>")) << name;
    EXPECT_FALSE(read_origin(folder / ("of-" + name + "-"))) << "nobody says who made them";
  }
  head[2] = 7;
  expect_error(Exit::bad_data,
               "nano.bin: document 1, position 0: token 256 (expected 0 to 199, the vocabulary has 200)",
               [&] {
                 const RawTokens raw(folder / "nano.bin", 200);
                 TokenWriter writer(folder / "none", TokenType::u16);
                 raw.copy_to(writer, 105);  // a document ends in 'i'
               });
  write_file(folder / "short.bin", bytes_of_numbers(head) + bytes_of_numbers(tokens));
  expect_error(Exit::bad_data, "short.bin: the head says 7 tokens, and the file has 6",
               [&] { import_files({.inputs = {folder / "short.bin"}, .output = folder / "x"}); });
  write_file(folder / "odd.bin", "abc");
  expect_error(Exit::bad_data, "odd.bin: 3 bytes of tokens",
               [&] { import_files({.inputs = {folder / "odd.bin"}, .output = folder / "y"}); });
}

TEST(Import, RefusesColumnsWithTheLineThatMakesJsonLines) {
  const Folder folder;
  write_file(folder / "a.parquet", "PAR1");
  write_file(folder / "b.arrow", "ARROW1");
  expect_error(Exit::bad_data, "pandas.read_parquet(",
               [&] { import_files({.inputs = {folder / "a.parquet"}, .output = folder / "out"}); });
  expect_error(Exit::bad_data, "Dataset.from_file(",
               [&] { import_files({.inputs = {folder / "b.arrow"}, .output = folder / "out"}); });
  write_file(folder / "columns.txt", "PAR1\x15 and more");
  expect_error(Exit::bad_data, "columns.txt: Parquet is not read",
               [&] { import_files({.inputs = {folder / "columns.txt"}, .output = folder / "out"}); });
  expect_error(Exit::bad_data, "Parquet is not read",
               [&] { import_files({.inputs = {folder / ""}, .output = folder / "out"}); });
}

TEST(Import, OfTokensOfAnotherTokenizerIsRefusedWithBothNames) {
  const Folder folder;
  write_origin(folder / "pair", {.tokenizer = "there.json", .hash = std::string(64, 'a'), .vocabulary = 9});
  expect_error(Exit::bad_configuration,
               "there.json (SHA-256 aaaaaaaaaaaaaaaa), and the run's data.tokenizer is bytes",
               [&] { require_tokens_of(folder / "pair", "bytes", std::string(64, 'b')); });
  require_tokens_of(folder / "pair", "elsewhere.json", std::string(64, 'a'));
  require_tokens_of(folder / "another", "bytes", std::string(64, 'b'));
  write_file(folder / "pair.json", "{\"tokenizer\": 3}");
  expect_error(Exit::bad_data, "pair.json: there is no text under 'tokenizer'",
               [&] { read_origin(folder / "pair"); });
}

/// Samples of `sequence` tokens of the answers in a pair, as texts in which a target that does not count is a
/// dot.
std::vector<std::string> targets_of(const std::string& prefix, std::int64_t sequence) {
  auto file = std::make_unique<TokenFile>(prefix);
  auto mask = AnswerMask::of(*file, prefix);
  AnswersDataset dataset(std::move(file), std::move(*mask), sequence, std::nullopt);
  std::vector<std::string> texts;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence)), targets(tokens);
  for (std::int64_t k = 0; k < dataset.count(); ++k) {
    FieldTensors to;
    to.set(field::tokens, {tokens.data(), {sequence}, DType::i32});
    to.set(field::targets, {targets.data(), {sequence}, DType::i32});
    dataset.sample(k, to);
    std::string text;
    for (const std::int32_t target : targets)
      text += target < 0 ? "." : printable(std::vector<std::int32_t>{target});
    texts.push_back(text);
  }
  return texts;
}

constexpr std::string_view chats =
    R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},)"
    R"({"role":"user","content":"b"},{"role":"assistant","content":"cc"}]})"
    "\n"
    R"({"prompt":"p","answer":"aa"})"
    "\n";

TEST(Answers, AreNotTakenForTextsWhereTheirMaskWasLost) {
  const Folder folder;
  write_file(folder / "in.jsonl", std::string(chats));
  ImportRequest request{.inputs = {folder / "in.jsonl"}, .output = folder / "pair"};
  request.rules.answers = true;
  request.rules.chat_template = "chatml";
  import_files(request);
  std::filesystem::remove(folder / "pair.mask");
  DataConfig data;
  data.train = {{folder / "pair", 1}};
  expect_error(Exit::bad_data, "pair.mask is missing, and ", [&] {
    Corpus(data, Subset::train,
           {{field::tokens, DType::i32, {4}, 260}, {field::targets, DType::i32, {4}, 260}}, 1);
  });
}

TEST(Answers, CountAloneAndToTheirEnd) {
  const Folder folder;
  write_file(folder / "in.jsonl", std::string(chats));
  write_file(folder / "short.json", R"({"user": "U{content};", "assistant": "A{content}; "})");
  ImportRequest request{.inputs = {folder / "in.jsonl"}, .output = folder / "out"};
  request.rules.answers = true;
  request.rules.chat_template = folder / "short.json";
  EXPECT_THAT(import_files(request), HasSubstr("of which 9 count"));
  EXPECT_THAT(documents_of(folder / "out"), ElementsAre("Uhi;Ayo; Ub;Acc; ", "Up;Aaa; "));
  EXPECT_THAT(targets_of(folder / "out", 16), ElementsAre("....yo;.....cc;.", "...aa;.........."));
  EXPECT_THAT(inspect_file(folder / "out", 25), HasSubstr("as text: Uhi;A⟦yo;⟧ Ub;A⟦cc;⟧ Up;A⟦aa;⟧ "));
}

TEST(Answers, ThatAreCutDoNotCountAtAll) {
  const Folder folder;
  write_file(folder / "in.jsonl", std::string(chats));
  write_file(folder / "short.json", R"({"user": "U{content};", "assistant": "A{content};"})");
  ImportRequest request{.inputs = {folder / "in.jsonl"}, .output = folder / "out"};
  request.rules.answers = true;
  request.rules.chat_template = folder / "short.json";
  import_files(request);  // "Uhi;Ayo;Ub;Acc;"
  EXPECT_THAT(targets_of(folder / "out", 14)[0], "....yo;....cc;");
  EXPECT_THAT(targets_of(folder / "out", 13)[0], "....yo;......");
  EXPECT_THAT(targets_of(folder / "out", 12)[0], "....yo;.....");
  EXPECT_THAT(targets_of(folder / "out", 7)[0], "....yo;");
  EXPECT_THAT(targets_of(folder / "out", 6)[0], "......");
}

TEST(Answers, NeedATemplateForMessagesAlone) {
  const Folder folder;
  write_file(folder / "messages.jsonl", std::string(chats));
  write_file(folder / "prompts.jsonl", "{\"prompt\":\"p\",\"answer\":\"aa\"}\n");
  ImportRequest request{.inputs = {folder / "prompts.jsonl"}, .output = folder / "out"};
  request.rules.answers = true;
  import_files(request);
  EXPECT_THAT(targets_of(folder / "out", 5), ElementsAre("aa<end>.."));
  request.inputs = {folder / "messages.jsonl"};
  request.output = folder / "other";
  expect_error(Exit::usage, "messages.jsonl: line 1: messages need a template",
               [&] { import_files(request); });
  request.rules.chat_template = folder / "short.json";
  write_file(folder / "short.json", R"({"assistant": "A{content};"})");
  expect_error(
      Exit::bad_data,
      "messages.jsonl: line 1: the template " + folder / "short.json" + " has no pattern for the role 'user'",
      [&] { import_files(request); });
}

TEST(ChatTemplate, WritesConversationsAsChatMlAndLlama3) {
  const std::vector<Message> messages{{"user", " Hi "}, {"assistant", "Yes."}};
  const auto text = [&](const std::string& name, bool asks) {
    std::string all;
    for (const ChatPart& part : ChatTemplate(name).parts(messages, asks))
      all += part.counts ? "[" + part.text + "]" : part.text;
    return all;
  };
  EXPECT_EQ(text("chatml", false),
            "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n[Yes.][<|im_end|>]\n");
  EXPECT_EQ(
      text("llama3", true),
      "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant"
      "<|end_header_id|>\n\n[Yes.][<|eot_id|>]<|start_header_id|>assistant<|end_header_id|>\n\n");
}

}  // namespace
}  // namespace mindpipe
