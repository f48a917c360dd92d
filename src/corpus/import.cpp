#include "corpus/import.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <numeric>
#include <optional>
#include <thread>

#include "core/check.h"
#include "corpus/chat_template.h"
#include "corpus/import_reader.h"
#include "corpus/raw_tokens.h"
#include "corpus/token_origin.h"
#include "corpus/token_writer.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

/// Threads where nobody says how many, and the bytes of texts that they have at once: each thread has a cache
/// of words, and ids take more memory than text.
constexpr unsigned usual_threads = 16;
constexpr std::size_t most_at_once = TextCuts::longest_whole;

std::size_t bytes_of(const std::vector<RawDocument>& documents) {
  return std::accumulate(documents.begin(), documents.end(), std::size_t{0},
                         [](std::size_t sum, const RawDocument& one) { return sum + one.text.size(); });
}

/// A pair that is being written, with what stands beside it.
class ImportedPair {
 public:
  ImportedPair(const std::string& prefix, TokenType type, bool has_mask)
      : prefix_(prefix), writer_(prefix, type) {
    unused(prefix + ".json");
    if (!has_mask) return;
    mask_path_.emplace(unused(prefix + ".mask") + ".unfinished");
    mask_ = create_file(mask_path_->path());
  }
  TokenWriter& writer() { return writer_; }
  void add(const std::vector<TokenId>& ids, const std::vector<std::uint8_t>& counts) {
    writer_.add(ids);
    if (!mask_path_) return;
    counted_ += std::count(counts.begin(), counts.end(), 1);
    mask_.write(reinterpret_cast<const char*>(counts.data()), static_cast<std::streamsize>(counts.size()));
  }
  void finish(TokenOrigin origin) {
    writer_.finish();
    origin.documents = writer_.documents();
    origin.tokens = writer_.tokens();
    if (mask_path_) {
      origin.counted = counted_;
      mask_.close();
      MP_REQUIRE(mask_.good() && mask_path_->becomes(prefix_ + ".mask"), Exit::io_error,
                 "{}.mask: writing failed ({}); check the space on the disk", prefix_, std::strerror(errno));
    }
    write_origin(prefix_, origin);
  }
  std::int64_t counted() const { return counted_; }

 private:
  std::string prefix_;
  TokenWriter writer_;
  std::optional<UnfinishedFile> mask_path_;
  std::ofstream mask_;
  std::int64_t counted_ = 0;
};

class Import {
 public:
  explicit Import(const ImportRequest& request)
      : request_(request),
        prefix_(TokenFile::prefix_of(request.output)),
        files_(files_to_import(request.inputs, request.format)),
        tokenizer_(load_tokenizer(request.tokenizer)) {
    MP_REQUIRE(!files_.empty(), Exit::usage, "no file is named to import");
    std::error_code none;  // what cannot be made is said where the file is
    std::filesystem::create_directories(std::filesystem::path(prefix_).parent_path(), none);
    format_ = files_[0].format;
    for (const ImportFile& file : files_) {
      const auto kind_of = [](TextFormat format) {
        return format == TextFormat::pairs || format == TextFormat::tokens ? format : TextFormat::text;
      };
      MP_REQUIRE(kind_of(file.format) == kind_of(format_), Exit::usage,
                 "{} holds {} and {} {}; import them one after the other", files_[0].path, format_, file.path,
                 file.format);
      MP_REQUIRE(
          !request.rules.answers || file.format == TextFormat::jsonl, Exit::usage,
          "{}: answers are taken from JSON lines, and this is {}; name .jsonl files, or --format jsonl",
          file.path, file.format);
    }
  }

  std::string run() {
    if (format_ == TextFormat::tokens) return run_tokens();
    const bool pairs = format_ == TextFormat::pairs;
    const TokenType type = token_type_for(tokenizer_->vocabulary());
    ImportedPair first(pairs ? prefix_ + ".source" : prefix_, type, request_.rules.answers);
    std::optional<ImportedPair> second;
    if (pairs) second.emplace(prefix_ + ".target", type, false);
    encode_all([&](const EncodedDocument& document) {
      if (pairs && !document.is_empty) {
        for (auto& [pair, ids] : {std::pair{&first, &document.ids}, {&*second, &document.targets}}) {
          pair->add(*ids, {});
          pair->writer().end_document();
        }
      } else if (!pairs) {
        has_text_ = has_text_ || !document.is_empty;
        if (has_text_) first.add(document.ids, document.counts);
        if (document.ends && has_text_) first.writer().end_document();
        if (document.ends && !has_text_) ++left_out_;
        if (document.ends) has_text_ = false;
      }
    });
    MP_REQUIRE(first.writer().tokens() > 0, Exit::bad_data,
               "{}: the file has no text; name one that has some", named());
    const TokenOrigin origin = this->origin();
    first.finish(origin);
    if (second) second->finish(origin);
    return told(first, pairs ? prefix_ + ".source and .target" : prefix_ + ".bin and .idx");
  }

 private:
  /// Turns documents into tokens on several threads; `use` hears of them in their order.
  template <class Use>
  void encode_all(Use use) {
    const int threads =
        request_.threads > 0
            ? request_.threads
            : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, usual_threads));
    if (!request_.rules.chat_template.empty())
      ChatTemplate(request_.rules.chat_template).warn_without_end(*tokenizer_);
    const TextCuts cuts(*tokenizer_);
    std::vector<std::unique_ptr<ImportEncoder>> encoders;
    for (int i = 0; i < threads; ++i)
      encoders.push_back(std::make_unique<ImportEncoder>(request_.rules, *tokenizer_, files_, cuts));
    using Encoded = std::vector<EncodedDocument>;
    struct Task {
      std::unique_ptr<ImportEncoder> encoder;
      std::size_t bytes;
      std::future<Encoded> result;
    };
    std::deque<Task> tasks;
    std::size_t at_once = 0;
    const auto hear_oldest = [&] {
      for (const EncodedDocument& document : tasks.front().result.get()) use(document);
      at_once -= tasks.front().bytes;
      encoders.push_back(std::move(tasks.front().encoder));
      tasks.pop_front();
    };
    ImportReader reader(files_, cuts);
    for (std::vector<RawDocument> some = reader.next(); !some.empty(); some = reader.next()) {
      const std::size_t bytes = bytes_of(some);
      while (!tasks.empty() && (encoders.empty() || at_once + bytes > most_at_once)) hear_oldest();
      if (bytes > most_at_once) {  // one alone, whose pieces are written as they come
        for (RawDocument& document : some) encoders.back()->encode(std::move(document), use);
        continue;
      }
      Task task{std::move(encoders.back()), bytes, {}};
      encoders.pop_back();
      task.result = std::async(
          std::launch::async, [encoder = task.encoder.get(), documents = std::move(some)]() mutable {
            Encoded encoded;
            for (RawDocument& document : documents)
              encoder->encode(std::move(document),
                              [&](EncodedDocument&& one) { encoded.push_back(std::move(one)); });
            return encoded;
          });
      at_once += bytes;
      tasks.push_back(std::move(task));
    }
    while (!tasks.empty()) hear_oldest();
  }

  std::string run_tokens() {
    const bool is_known = request_.tokenizer != ByteTokenizer::word;
    const std::int64_t vocabulary = is_known ? tokenizer_->vocabulary() : 0;
    std::vector<RawTokens> sources;
    TokenType type = TokenType::u16;
    for (const ImportFile& file : files_) {
      sources.emplace_back(file.path, vocabulary);
      if (sources.back().type() != TokenType::u16) type = sources.back().type();
    }
    const auto end = is_known ? tokenizer_->special().end : std::nullopt;
    if (is_known) {
      ImportedPair pair(prefix_, type, false);
      for (const RawTokens& source : sources) source.copy_to(pair.writer(), end);
      pair.finish(origin());
      return told(pair, prefix_ + ".bin and .idx");
    }
    TokenWriter writer(prefix_, type);  // nobody says which tokenizer made them
    for (const RawTokens& source : sources) source.copy_to(writer, std::nullopt);
    writer.finish();
    return fmt::format(
        "{}.bin and .idx: {} tokens in {} documents from {}; --tokenizer would compare them with a "
        "vocabulary, and "
        "end documents",
        prefix_, writer.tokens(), writer.documents(), named());
  }

  TokenOrigin origin() const {
    TokenOrigin origin;
    origin.tokenizer = tokenizer_->name();
    origin.hash = hash_of(*tokenizer_);
    origin.vocabulary = vocabulary();
    for (const ImportFile& file : files_) origin.sources.push_back(file.path);
    return origin;
  }
  /// The end of a text is no byte: texts without it need no token for it.
  std::int64_t vocabulary() const {
    const bool without_end = request_.tokenizer == ByteTokenizer::word && !request_.rules.end_of_text;
    return tokenizer_->vocabulary() - (without_end ? 1 : 0);
  }
  std::string named() const {
    return files_.size() == 1 ? files_[0].path : fmt::format("{} files", files_.size());
  }
  std::string told(ImportedPair& pair, const std::string& where) const {
    return fmt::format("{}: {} tokens in {} documents from {}{}{}; the vocabulary is {}", where,
                       pair.writer().tokens(), pair.writer().documents(), named(),
                       left_out_ > 0 ? fmt::format(" ({} without text left out)", left_out_) : "",
                       request_.rules.answers ? fmt::format(", of which {} count", pair.counted()) : "",
                       vocabulary());
  }

  const ImportRequest& request_;
  std::string prefix_;
  std::vector<ImportFile> files_;
  std::unique_ptr<Tokenizer> tokenizer_;
  TextFormat format_ = TextFormat::text;
  bool has_text_ = false;  ///< the open document has
  std::int64_t left_out_ = 0;
};

}  // namespace

std::string import_files(const ImportRequest& request) { return Import(request).run(); }

}  // namespace mindpipe
