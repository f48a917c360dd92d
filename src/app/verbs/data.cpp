#include "app/verbs/data.h"

#include <fmt/ranges.h>

#include <charconv>
#include <iostream>
#include <sstream>

#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/check.h"
#include "corpus/import.h"
#include "corpus/inspect.h"
#include "corpus/synthesize.h"
#include "corpus/train_tokenizer.h"

namespace mindpipe {

void encode_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer, bool plain) {
  const std::unique_ptr<Encoder> encoder = tokenizer.encoder();
  std::vector<TokenId> ids;
  for (std::string line; std::getline(in, line);) {
    ids.clear();
    encoder->append(line, plain ? SpecialText::plain : SpecialText::tokens, ids);
    out << fmt::format("{}\n", fmt::join(ids, " "));
  }
}

void decode_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer) {
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::vector<TokenId> ids;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      TokenId id = 0;
      const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
      MP_REQUIRE(problem == std::errc{} && end == word.data() + word.size(), Exit::bad_data,
                 "line {}: '{}' is no id (expected whole numbers with spaces between them)", number, word);
      ids.push_back(id);
    }
    out << tokenizer.decode(ids, true) << '\n';
  }
}

std::string synthesize(const std::string& kind, const std::string& output, std::int64_t documents,
                       std::uint64_t seed) {
  constexpr std::int64_t lines = 16;
  MP_REQUIRE(kind == "arithmetic" || kind == "synthetic:arithmetic", Exit::usage,
             "there is no corpus '{}' to make; the one there is: arithmetic", kind);
  MP_REQUIRE(documents > 0, Exit::usage, "{} documents (there must be 1 or more)", documents);
  write_arithmetic(output, documents, lines, seed);
  return fmt::format("{}: {} documents of {} lines from seed {}", output, documents, lines, seed);
}

int data(const Arguments& arguments, const Config&) {
  const DataArguments& d = arguments.data;
  if (d.action == "import") print(import_files(d.import) + "\n");
  else if (d.action == "train-tokenizer") print(train_tokenizer(d.train_tokenizer) + "\n");
  else if (d.action == "inspect") print(inspect_file(d.input, d.show, d.tokenizer));
  else if (d.action == "encode") encode_lines(std::cin, std::cout, *load_tokenizer(d.tokenizer), d.plain);
  else if (d.action == "decode") decode_lines(std::cin, std::cout, *load_tokenizer(d.tokenizer));
  else print(synthesize(d.input, d.output, d.documents, d.seed) + "\n");
  return 0;
}

}  // namespace mindpipe
