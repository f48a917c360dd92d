#include "app/verbs/data.h"

#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "corpus/import.h"
#include "corpus/inspect.h"
#include "corpus/synthesize.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {

std::string import_text(const std::string& input, const std::string& output, const std::string& format,
                        const std::string& key, bool end_of_text) {
  const TextFormat chosen = text_format_of(format, input);
  const std::string prefix = TokenFile::prefix_of(output);
  TokenWriter writer(prefix, token_type_for(ByteTokenizer::end_of_text + 1));
  TextImport import(writer, end_of_text);
  import.read(input, chosen, key);
  MP_REQUIRE(writer.tokens() > 0, Exit::bad_data, "{}: the file has no text; name one that has some", input);
  writer.finish();
  return fmt::format(
      "{}.bin and .idx: {} tokens in {} documents from {}{}; the vocabulary is {}", prefix, writer.tokens(),
      writer.documents(), input,
      import.left_out() > 0 ? fmt::format(" ({} without text left out)", import.left_out()) : "",
      end_of_text ? 257 : 256);
}

std::string synthesize(const std::string& kind, const std::string& output, std::int64_t documents,
                       std::uint64_t seed, std::int64_t lines) {
  MP_REQUIRE(kind == "arithmetic" || kind == "synthetic:arithmetic", Exit::usage,
             "there is no corpus '{}' to make; the one there is: arithmetic", kind);
  MP_REQUIRE(documents > 0 && lines > 0, Exit::usage, "{} documents of {} lines (both must be 1 or more)",
             documents, lines);
  write_arithmetic(output, documents, lines, seed);
  return fmt::format("{}: {} documents of {} lines from seed {}", output, documents, lines, seed);
}

int data(const Arguments& arguments, const Config&) {
  const DataArguments& d = arguments.data;
  if (d.action == "import") print(import_text(d.input, d.output, d.format, d.key, d.end_of_text) + "\n");
  else if (d.action == "inspect") print(inspect_file(d.input, d.show));
  else print(synthesize(d.input, d.output, d.documents, d.seed) + "\n");
  return 0;
}

}  // namespace mindpipe
