#include "corpus/train_tokenizer.h"

#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "core/check.h"
#include "core/unfinished_file.h"
#include "corpus/import_reader.h"
#include "corpus/json_document.h"
#include "corpus/token_writer.h"
#include "tokenize/train_byte_pairs.h"

namespace mindpipe {
namespace {

/// Counts the words of files on several threads, each of which takes the next documents when it has none.
class WordsOfFiles {
 public:
  WordsOfFiles(const TrainTokenizerRequest& request, const std::vector<ImportFile>& files)
      : request_(request), files_(files), splits_(splits_of(request.rules)), reader_(files, cuts_) {}

  WordCounts::Counts count() {
    const int threads = request_.threads > 0
                            ? request_.threads
                            : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    std::vector<std::future<WordCounts::Counts>> others;
    for (int i = 1; i < threads; ++i)
      others.push_back(std::async(std::launch::async, [this] { return count_some(); }));
    WordCounts all(*splits_);
    all.add(count_some());
    for (auto& other : others) all.add(other.get());
    return all.counts();
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<RawDocument> next() {
    const std::lock_guard lock(mutex_);
    std::vector<RawDocument> documents = reader_.next();
    for (const RawDocument& document : documents) bytes_ += static_cast<std::int64_t>(document.text.size());
    return documents;
  }
  WordCounts::Counts count_some() {
    WordCounts counts(*splits_);
    for (std::vector<RawDocument> some = next(); !some.empty(); some = next())
      for (const RawDocument& document : some) count(document, counts);
    return counts.counts();
  }
  void count(const RawDocument& document, WordCounts& counts) const {
    const ImportFile& file = files_[document.file];
    if (file.format == TextFormat::jsonl) {
      const JsonDocument json(file.path, document.line, document.text);
      if (json.object().contains(request_.key) || !json.object().contains("messages")) {
        counts.add(json.text_at(request_.key));
        return;
      }
      for (const Message& message : json.messages("", "")) counts.add(message.text);
    } else if (file.format == TextFormat::pairs) {
      const std::optional<SidesOfPair> sides = sides_of_pair(file.path, document);
      if (!sides) return;
      counts.add(sides->source);
      counts.add(sides->target);
    } else {
      counts.add(document.text);
    }
  }

  const TrainTokenizerRequest& request_;
  const std::vector<ImportFile>& files_;
  std::unique_ptr<PreTokenizer> splits_;
  TextCuts cuts_;
  std::mutex mutex_;
  ImportReader reader_;     ///< guarded by mutex_
  std::int64_t bytes_ = 0;  ///< bytes of texts that were read; guarded by mutex_
};

}  // namespace

std::string train_tokenizer(const TrainTokenizerRequest& request) {
  check_rules(request.rules);
  const std::vector<ImportFile> files = files_to_import(request.inputs, request.format);
  MP_REQUIRE(!files.empty(), Exit::usage, "no file is named to train on");
  for (const ImportFile& file : files)
    MP_REQUIRE(file.format != TextFormat::tokens, Exit::usage,
               "{} holds tokens, and a tokenizer is trained on texts; name files of text", file.path);
  std::error_code none;  // what cannot be made is said where the file is
  std::filesystem::create_directories(std::filesystem::path(request.output).parent_path(), none);
  UnfinishedFile unfinished(unused(request.output) + ".unfinished");
  std::ofstream file = create_file(unfinished.path());

  WordsOfFiles words(request, files);
  const WordCounts::Counts counts = words.count();
  MP_REQUIRE(!counts.empty(), Exit::bad_data, "{}: there is no text to train on; name files with some",
             files[0].path);
  const TrainedTokenizer trained = train_byte_pairs(request.rules, counts);
  file << trained.json;
  file.close();
  MP_REQUIRE(file.good() && unfinished.becomes(request.output), Exit::io_error,
             "{}: writing failed ({}); check the space on the disk", request.output, std::strerror(errno));
  return fmt::format(
      "{}: {} tokens, {} merges, from {} different words in {} bytes of text{}", request.output,
      trained.vocabulary, trained.merges, counts.size(), words.bytes(),
      trained.vocabulary < request.rules.vocabulary ? "; no more pairs stand often enough" : "");
}

}  // namespace mindpipe
