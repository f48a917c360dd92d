#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// `data encode`: each line of text as a line of ids. `plain`: special tokens in the text are letters.
void encode_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer, bool plain);
/// `data decode`: each line of ids as text and the end of a line.
void decode_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer);

/// `data synthesize`: documents that the program makes, into a .txt file or, for any other `output`, a
/// .bin/.idx pair. `kind` is arithmetic, as in `synthetic:arithmetic`. Gives a line for the user.
std::string synthesize(const std::string& kind, const std::string& output, std::int64_t documents,
                       std::uint64_t seed);

}  // namespace mindpipe
