#pragma once
#include <string>
#include <vector>

#include "corpus/import_encoder.h"

namespace mindpipe {

/// What an import reads, and what it makes of it.
struct ImportRequest {
  std::vector<std::string> inputs;  ///< files and folders
  std::string output;               ///< prefix of the pair
  std::string format = "auto";      ///< a format, or auto (see files_to_import)
  std::string tokenizer = "bytes";  ///< a path (see load_tokenizer)
  ImportRules rules{};
  int threads = 0;  ///< number that turn text into tokens; 0: all processors, at most 16
};

/// Reads files piece by piece and writes their tokens as PREFIX.bin and PREFIX.idx, with PREFIX.json beside
/// them, which names the tokenizer; of pairs PREFIX.source and PREFIX.target; of answers PREFIX.mask too.
/// Empty documents are left out. Gives a line for the user.
std::string import_files(const ImportRequest& request);

}  // namespace mindpipe
