#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/config.h"
#include "core/check.h"
#include "core/random.h"

namespace mindpipe {
namespace {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A text with a few bytes changed, dropped, doubled or replaced by what YAML finds remarkable.
std::string mutated(std::string text, std::uint32_t number) {
  static const char* const pieces[] = {"&a",   "*a", "!!int ", "<<: ",  "---\n", "...\n", "? ",   "- ",
                                       "[",    "]",  "{",      "}",     "\"",    "'",     "|\n",  ">\n",
                                       "#",    "%",  "@",      "`",     ": ",    ", ",    "\t",   "\r",
                                       "\xff", "~",  "-1",     "1e999", ".nan",  "0x1f",  "null", "auto"};
  const RandomStream random{7, purpose_of("mutation"), 0, number};
  std::uint64_t next = 0;
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random.word(next++) % n; };
  for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, pieces[below(std::size(pieces))]);
        break;
      case 1:
        text.erase(at, below(12));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.insert(at, text.substr(at, below(60)));
        break;
      case 4:
        text.insert(at, std::string(1 + below(30), "[{ -"[below(4)]));
        break;
    }
  }
  return text;
}

/// Whatever is done to a file, it is read or refused with one sentence and a code that says whose fault it
/// is.
TEST(Mutations, AreReadOrRefusedWithASentence) {
  const char* asked = std::getenv("MINDPIPE_MUTATIONS");
  const std::uint32_t count = asked ? static_cast<std::uint32_t>(std::atol(asked)) : 500;
  const std::string file =
      std::filesystem::temp_directory_path() / ("mindpipe_mutation_" + std::to_string(getpid()) + ".yaml");
  const std::string tiny = text_in(MINDPIPE_SOURCE_DIR "/configs/gpt-tiny.yaml"),
                    llama = text_in(MINDPIPE_SOURCE_DIR "/configs/llama-8b.yaml"),
                    chosen =
                        "run: {dir: d}\ndata: {train: [synthetic:dates]}\nmodel:\n  kind: subnet\n"
                        "  choice: [1, 0, 2, 0, 3]\n  space:\n    name: fuzzed\n    repeat: 2\n"
                        "    encoder: {blocks: [[glu, conv-3], [identity, light-5-4]]}\n    decoder:\n"
                        "      blocks: 3\n      candidates: [attention-4, mlp-2, separable-7]\n"
                        "      every: {2: [cross-4, cross-8]}\n";
  ASSERT_FALSE(tiny.empty() || llama.empty());
  const std::string* const texts[] = {&tiny, &llama, &chosen};
  std::uint32_t refused = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string text = mutated(*texts[i % 3], i);
    std::ofstream(file, std::ios::binary) << text;
    try {
      const Config config = read_config(file, {});
      std::ofstream(file, std::ios::binary) << to_yaml(config);
      EXPECT_EQ(read_config(file, {}), config) << text;
    } catch (const Error& error) {
      ++refused;
      const std::string sentence = error.what();
      EXPECT_EQ(error.code, Exit::bad_configuration) << sentence;
      EXPECT_TRUE(sentence.starts_with(file)) << sentence;
      EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    }
  }
  std::filesystem::remove(file);
  EXPECT_GT(refused, count / 4);
}

}  // namespace
}  // namespace mindpipe
