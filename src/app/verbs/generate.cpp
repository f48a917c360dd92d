#include <algorithm>

#include "app/run/run.h"
#include "app/run/weights_file.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/sample.h"
#include "app/verbs/verbs.h"
#include "core/log.h"
#include "runtime/diagnose.h"
#include "runtime/generator.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {

namespace {

constexpr int bytes_and_special_tokens = 260;

/// What a byte may be drawn from: a text has no special tokens but its end.
std::vector<float> of_words(std::vector<float> logits) {
  logits.resize(std::min<std::size_t>(logits.size(), ByteTokenizer::end_of_text + 1));
  return logits;
}

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
  alone.train.recompute = RecomputeKind::none;
  alone.train.sequence_parallel = false;
  MP_REQUIRE(continuation_of(alone).has_value(), Exit::bad_configuration,
             "model.kind is '{}', and generate takes a language model that reads earlier words alone, or a "
             "subnet of a space without an encoder",
             given.model.kind);
  Run run(arguments, alone, Run::on_job(on_one_rank));
  const Config& config = run.config();
  const Model::Continuation text = continuation_of(config).value();
  const GenerateConfig& rule = config.generate;
  const bool bytes = text.vocabulary <= bytes_and_special_tokens;
  std::vector<std::int32_t> tokens = ByteTokenizer::ids_of(rule.prompt.empty() ? "\n" : rule.prompt);
  MP_REQUIRE(bytes, Exit::bad_configuration,
             "generate reads prompts byte by byte, and model.vocabulary is {}: a tokenizer for it is not "
             "part of this program",
             text.vocabulary);
  for (std::int32_t id : tokens)
    MP_REQUIRE(id < text.vocabulary, Exit::bad_data,
               "generate.prompt has the byte {}, which a vocabulary of {} does not have", id,
               text.vocabulary);
  MP_REQUIRE(static_cast<std::int64_t>(tokens.size()) <= text.context, Exit::bad_data,
             "generate.prompt has {} tokens, but the context of the model is {}; shorten it", tokens.size(),
             text.context);

  run.make_worker(Purpose::reading);
  read_weights_of_run(run.worker());
  Generator generator(config, run.worker());
  const RandomStream stream{config.seed, purpose_of("generate"), 0, 0};
  if (!rule.prompt.empty()) print(rule.prompt);
  std::vector<float> logits = of_words(generator.append(tokens));
  for (int i = 0; i < rule.tokens; ++i) {
    if (const auto unfit = unfit_to_draw(logits))
      fail(Exit::diverged, "token {} of the text cannot be drawn: a logit is {}; {}", i + 1,
           number_text(*unfit), diagnose_weights(run.worker()));
    const std::int32_t next = sample_token(logits, rule, stream, i);
    if (next == ByteTokenizer::end_of_text) break;
    print(ByteTokenizer::text_of(std::vector<std::int32_t>{next}));
    tokens.push_back(next);
    logits = of_words(generator.follow(tokens));
  }
  print("\n");
  return 0;
}

}  // namespace mindpipe
