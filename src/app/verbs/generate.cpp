#include <algorithm>

#include "app/run/run.h"
#include "app/run/weights.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/sample.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "config/tokens.h"
#include "corpus/chat_template.h"
#include "corpus/token_file.h"
#include "corpus/token_origin.h"
#include "runtime/diagnose.h"
#include "runtime/generator.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {

/// What is read and written of a run: its tokenizer, the prompt in tokens, and the ids that end the text.
class Writing {
 public:
  explicit Writing(const Config& config)
      : tokenizer_(open_tokenizer(config.data)),
        is_bytes_(config.data.tokenizer.empty()),
        decoder_(*tokenizer_) {
    for (const DataSource& source : config.data.train)  // what the weights have learned
      require_tokens_of(TokenFile::prefix_of(source.path), tokenizer_->name(), hash_of(*tokenizer_));
    const std::string& prompt = config.generate.prompt;
    const auto encoder = tokenizer_->encoder();
    if (const NamedTokens named = tokenizer_->special(); named.end) ends_.push_back(*named.end);
    if (config.data.chat_template.empty()) {
      encoder->append(prompt.empty() ? "\n" : prompt, SpecialText::tokens, prompt_);
      return;
    }
    const ChatTemplate chat(config.data.chat_template);
    for (const ChatPart& part : chat.parts({{"user", prompt}}, true))
      encoder->append(part.text, part.is_markup ? SpecialText::tokens : SpecialText::plain, prompt_);
    chat.warn_without_end(*tokenizer_);
    if (const auto end = chat.end_of_answer(*tokenizer_)) ends_.push_back(*end);
  }

  const std::vector<TokenId>& prompt() const { return prompt_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Refuses a model whose tokens the tokenizer does not have.
  void require_fit(std::int64_t vocabulary) const {
    constexpr int bytes_and_special_tokens = 260;
    MP_REQUIRE(!is_bytes_ || vocabulary <= bytes_and_special_tokens, Exit::bad_configuration,
               "generate reads prompts byte by byte, and model.vocabulary is {}: name the tokenizer of its "
               "tokens in "
               "data.tokenizer",
               vocabulary);
    for (const TokenId id : prompt_)
      MP_REQUIRE(id < vocabulary, Exit::bad_data,
                 "generate.prompt has the {} {}, which a vocabulary of {} does not have",
                 is_bytes_ ? "byte" : "token", id, vocabulary);
  }
  /// What a token may be drawn from: those that the tokenizer can write.
  std::vector<float> of_tokens(std::vector<float> logits) const {
    logits.resize(std::min<std::size_t>(logits.size(), static_cast<std::size_t>(tokenizer_->vocabulary())));
    return logits;
  }
  bool ends(TokenId id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }
  /// Text that became whole by a token. Bytes are written as they come.
  std::string add(TokenId id) {
    return is_bytes_ ? tokenizer_->decode(std::vector<TokenId>{id}) : decoder_.add(id);
  }
  /// What is whole of the text that still waited: never a part of a character.
  std::string finish() {
    std::string rest = is_bytes_ ? "" : decoder_.finish();
    while (ends_within_character(rest)) rest.pop_back();
    return rest;
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  bool is_bytes_;
  StreamDecoder decoder_;
  std::vector<TokenId> prompt_, ends_;
};

Config on_one_rank(const Config& config, int ranks) {
  MP_REQUIRE(ranks == 1, Exit::bad_configuration,
             "generate runs on one rank, and this job has {}: start it without mpirun or with one rank",
             ranks);
  return with_grid(config, ranks);
}

}  // namespace

/// Continues a prompt with the run's saved weights, on one rank, and prints the text.
int generate(const Arguments& arguments, const Config& given) {
  Config alone = given;
  // Logical shards and schedules divide training's work; one rank that reads needs none of it.
  alone.grid = {};
  alone.reproducible = {1, 1};
  alone.schedule = {};
  alone.train.micro_batch = alone.train.batch = 1;
  alone.train.zero = 0;
  alone.train.recompute = alone.train.swap = WhichBlocks::none;
  alone.train.sequence_parallel = false;
  MP_REQUIRE(continuation_of(alone).has_value(), Exit::bad_configuration,
             "model.kind is '{}', and generate takes a language model that reads earlier words alone, or a "
             "subnet of a space without an encoder",
             given.model.kind);
  Run run(arguments, alone, Run::on_job(on_one_rank));
  const Config& config = run.config();
  const Model::Continuation text = continuation_of(config).value();
  const GenerateConfig& rule = config.generate;
  require_kept_tokenizer(config);
  Writing writing(config);
  std::vector<std::int32_t> tokens = writing.prompt();
  writing.require_fit(text.vocabulary);
  MP_REQUIRE(static_cast<std::int64_t>(tokens.size()) <= text.context, Exit::bad_data,
             "generate.prompt has {} tokens, but the context of the model is {}; shorten it", tokens.size(),
             text.context);

  run.make_worker(Purpose::reading);
  read_weights_of_run(run.worker());
  Generator generator(config, run.worker());
  const RandomStream stream{config.seed, purpose_of("generate"), 0, 0};
  if (!rule.prompt.empty()) print(rule.prompt + (config.data.chat_template.empty() ? "" : "\n"));
  std::vector<float> logits = writing.of_tokens(generator.append(tokens));
  for (int i = 0; i < rule.tokens; ++i) {
    if (const auto unfit = unfit_to_draw(logits))
      fail(Exit::diverged, "token {} of the text cannot be drawn: a logit is {}; {}", i + 1,
           number_text(*unfit), diagnose_weights(run.worker()));
    const std::int32_t next = sample_token(logits, rule, stream, i);
    if (writing.ends(next)) break;
    print(writing.add(next));
    tokens.push_back(next);
    logits = writing.of_tokens(generator.follow(tokens));
  }
  print(writing.finish() + "\n");
  return 0;
}

}  // namespace mindpipe
