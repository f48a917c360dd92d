#include "corpus/synthesize.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/check.h"
#include "corpus/arithmetic.h"
#include "corpus/token_writer.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {

namespace {
void write_text(const SumsInWords& arithmetic, const std::string& path, std::int64_t documents,
                std::int64_t lines) {
  UnfinishedFile unfinished(unused(path) + ".unfinished");
  std::ofstream file = create_file(unfinished.path());
  for (std::int64_t d = 0; d < documents; ++d) {
    if (d > 0) file << '\n';
    for (std::int64_t line = 0; line < lines; ++line) file << arithmetic.line(d, line);
  }
  file.close();
  MP_REQUIRE(file.good() && unfinished.becomes(path), Exit::io_error,
             "{}: writing failed ({}); check the space on the disk", path, std::strerror(errno));
}
}  // namespace

void write_arithmetic(const std::string& output, std::int64_t documents, std::int64_t lines,
                      std::uint64_t seed) {
  const SumsInWords arithmetic(seed, Subset::train);
  if (output.ends_with(".txt")) return write_text(arithmetic, output, documents, lines);
  TokenWriter writer(TokenFile::prefix_of(output), token_type_for(256));
  for (std::int64_t d = 0; d < documents; ++d) {
    for (std::int64_t line = 0; line < lines; ++line)
      writer.add(ByteTokenizer::ids_of(arithmetic.line(d, line)));
    writer.end_document();
  }
  writer.finish();
}

}  // namespace mindpipe
