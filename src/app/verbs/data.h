#pragma once
#include <cstdint>
#include <string>

namespace mindpipe {

/// `data import`: text into a .bin/.idx pair, one token a byte. `format` is auto, text, paragraphs or jsonl,
/// whose text is under `key`; `end_of_text`: documents end in token 256. Gives a line for the user.
std::string import_text(const std::string& input, const std::string& output,
                        const std::string& format = "auto", const std::string& key = "text",
                        bool end_of_text = false);

/// `data synthesize`: documents that the program makes, into a .txt file or, for any other `output`, a
/// .bin/.idx pair. `kind` is arithmetic, as in `synthetic:arithmetic`. Gives a line for the user.
std::string synthesize(const std::string& kind, const std::string& output, std::int64_t documents,
                       std::uint64_t seed, std::int64_t lines = 16);

}  // namespace mindpipe
