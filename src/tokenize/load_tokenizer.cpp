#include <filesystem>

#include "core/check.h"
#include "core/input_file.h"
#include "tokenize/byte_tokenizer.h"
#include "tokenize/sentence_piece.h"
#include "tokenize/tiktoken.h"
#include "tokenize/tokenizer.h"
#include "tokenize/tokenizer_json.h"

namespace mindpipe {

namespace {

namespace fs = std::filesystem;

/// The file of a folder that holds its tokenizer.
std::string file_of_folder(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.json", "vocab.txt", "gpt2.tiktoken", "cl100k.tiktoken",
                           "o200k.tiktoken", "llama3.tiktoken", "tokenizer.model"})
    if (const std::string path = fs::path(folder) / name; file_is_there(path)) return path;
  fail(Exit::input_missing,
       "{}: the folder has no tokenizer.json, vocab.json, vocab.txt, *.tiktoken or tokenizer.model; name the "
       "file of "
       "the tokenizer",
       folder);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (path == ByteTokenizer::word) return std::make_unique<ByteTokenizer>();
  const std::size_t colon = path.rfind(':');
  const bool has_pattern =
      colon != std::string::npos && !file_is_there(path) && file_is_there(path.substr(0, colon));
  if (has_pattern) return load_tiktoken(path.substr(0, colon), path.substr(colon + 1));
  std::error_code said_by_who_reads_it;
  const std::string file = fs::is_directory(path, said_by_who_reads_it) ? file_of_folder(path) : path;
  const std::string name = fs::path(file).filename().string();
  if (name == "merges.txt")
    return load_vocabulary_and_merges((fs::path(file).parent_path() / "vocab.json").string());
  if (name.ends_with(".txt")) return load_word_pieces(file);
  if (name.ends_with("vocab.json")) return load_vocabulary_and_merges(file);
  if (name.ends_with(".json")) return load_tokenizer_json(file);
  if (name.ends_with(".tiktoken") || (name.ends_with(".model") && has_ranks(file)))
    return load_tiktoken(file, "");
  if (name.ends_with(".model")) return load_sentence_piece(file);
  fail(Exit::bad_configuration,
       "{}: a tokenizer is read from tokenizer.json, vocab.json beside merges.txt, vocab.txt, *.tiktoken, "
       "*.model, or "
       "a folder with one of them; bytes is one token a byte",
       path);
}

}  // namespace mindpipe
