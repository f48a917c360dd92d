#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "config/config.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// Whether a file may name a kind of model: its own files, and the table of kinds.
bool may_name(const fs::path& file, const std::string& kind) {
  const std::string stem = file.stem();
  const bool is_of_tokens = file.string().find("src/tokenize/") != std::string::npos;  // GPT-2's files
  return is_of_tokens || stem == kind || stem.starts_with(kind + "_") ||
         file.string().ends_with("src/config/models/table.h");
}

/// A kind whose name is what a good part of the program is about too: a subnet. Only what tells it from other
/// kinds counts there.
std::regex told_apart(const std::string& kind) {
  return std::regex("(ModelKind::|model\\.)" + kind + "([^A-Za-z0-9_]|$)|(^|[^A-Za-z0-9_])" + kind + "::");
}

/// The lines of sources that name a kind, in a word of its own or at the beginning of one, outside its files;
/// in src a word of capitals too. Names of tensors in files are other words: "transformer.wte.weight",
/// and a Transformer is what most kinds are.
std::vector<std::string> lines_that_name(const std::string& kind) {
  std::string capital = kind;
  capital[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(kind[0])));
  const std::regex of_tensor("\"" + kind + "\\.|Transformer\\b");
  const std::regex word("(^|[^A-Za-z0-9_])" + kind + "([^A-Za-z0-9]|$)|" + capital + "[A-Z]"),
      any_case("(^|[^A-Za-z0-9_])" + kind + "([^A-Za-z0-9]|$)", std::regex::icase), alone = told_apart(kind);
  std::vector<std::string> found;
  for (const std::string room : {"src", "kernels"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(MINDPIPE_SOURCE_DIR) / room)) {
      if (!entry.is_regular_file() || may_name(entry.path(), kind)) continue;
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        const std::string words = std::regex_replace(line, of_tensor, "");
        const bool named = kind == "subnet" ? std::regex_search(words, alone)
                                            : std::regex_search(words, word) ||
                                                  (room == "src" && std::regex_search(words, any_case));
        if (named) found.push_back(entry.path().string() + ":" + std::to_string(number) + ": " + line);
      }
    }
  return found;
}

TEST(ModelNames, StandInTheirOwnFilesAndInTheTableOfKindsAlone) {
  for (const ModelKind kind : all_kinds<ModelKind>())
    if (kind != ModelKind::supernet)  // which names a way to train, too
      for (const std::string& line : lines_that_name(std::string(name_of(kind)))) ADD_FAILURE() << line;
}

}  // namespace
}  // namespace mindpipe
