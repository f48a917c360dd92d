#pragma once
#include <fstream>
#include <string>
#include <vector>

#include "runtime/parity_cases.h"
#include "runtime/plain_loop.h"
#include "spaces.h"
#include "supernet/sampler.h"

// Networks of a space that are scored on the first batches of a corpus.
namespace mindpipe {

inline constexpr int scored_networks = 64, scored_batches = 3;

/// The reduced space of pairs of texts, narrow, on dates.
inline Config config_of_scores(Precision precision, const GridConfig& grid = {1, 1, 1, 1}) {
  Config c;
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  supernet::Settings& m = c.model.supernet;
  std::ifstream file(MINDPIPE_SOURCE_DIR "/configs/spaces/nlp-small.yaml");
  m.space = space_from(std::string(std::istreambuf_iterator<char>(file), {}));
  m.width = 32;
  m.context = 32;
  m.dropout = 0.1;
  c.data.train = {{"synthetic:dates", 1}};
  c.data.source_sequence = c.data.target_sequence = 32;
  c.grid = grid;
  c.reproducible.tensor = c.reproducible.data = 2;
  c.train.batch = 8;
  c.train.micro_batch = 2;
  c.train.steps = 16;
  c.train.precision = precision;
  c.device.threads = 1;
  return resolve(c);
}

/// The batches that are scored on.
inline Corpus corpus_of_scores(const Config& config) {
  return {config.data, Subset::train, fields_of(config), config.seed};
}

inline std::vector<Subnet> networks_to_score(const Config& config) {
  std::vector<Subnet> all;
  const auto sampler = draw_subnets(config.model.supernet.space, {.seed = 21});
  for (int id = 0; id < scored_networks; ++id) all.push_back(sampler->next());
  return all;
}

/// What a stream has told.
struct ScoresTold {
  std::vector<Evaluation> scores;
  std::string order;  ///< n: a network was asked for; h: one was heard of
};

/// How networks are scored: by a lag, with so many asked for at most; each rank wishes an end from the
/// network on that it asks for as number `wishes_at`, if not below 0.
struct HowScored {
  std::int64_t lag = 0;
  int networks = scored_networks;
  int wishes_at = -1;
};

inline ScoresTold scores_of(Worker& worker, const HowScored& how = {}) {
  const std::vector<Subnet> all = networks_to_score(worker.config());
  Corpus corpus = corpus_of_scores(worker.config());
  ScoresTold told;
  int asked = 0;
  worker.evaluator().score(corpus, scored_batches,
                           {.next = [&]() -> std::optional<Subnet> {
                              if (asked == how.networks) return std::nullopt;
                              told.order += 'n';
                              return all[static_cast<std::size_t>(asked++)];
                            },
                            .hear =
                                [&](const std::vector<Evaluation>& of_batches) {
                                  told.order += 'h';
                                  told.scores.push_back(sum_of(of_batches));
                                },
                            .wish = [&] { return how.wishes_at >= 0 && asked > how.wishes_at; },
                            .lag = how.lag});
  return told;
}

/// Networks that are scored one batch after the other, without a list, an executor or messages.
class PlainScores : PlainLoop {
 public:
  explicit PlainScores(const Config& config) : PlainLoop(config) {}

  std::vector<Evaluation> scores() {
    std::vector<Evaluation> all;
    for (const Subnet& subnet : networks_to_score(config_)) all.push_back(score(subnet));
    return all;
  }

 private:
  Evaluation score(const Subnet& subnet) {
    Corpus corpus = corpus_of_scores(config_);
    Evaluation found;
    hits_ = {};
    for (int batch = 0; batch < scored_batches; ++batch) {
      StepInput input = read(corpus, batch);
      input.choice = subnet.choice.data();
      std::vector<Floats64> losses;
      for (int shard = 0; shard < layout_.data_shards; ++shard)
        losses.push_back({pass_of_shard(input, shard, false)});
      found.losses += tree(losses)[0];
      found.targets += input.valid;
    }
    for (std::size_t i = 0; i < hits_.size(); ++i) found.hits[i] = static_cast<std::int64_t>(hits_[i]);
    return found;
  }

  StepInput read(Corpus& corpus, int batch) {
    const std::vector<Field>& fields = model_->fields();
    memory_of_fields_.resize(fields.size());
    FieldTensors drawn;
    StepInput input;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      const Shape shape = field.of(layout_.batch);
      memory_of_fields_[i].resize(static_cast<std::size_t>(shape.count()) * bytes_of(field.type));
      drawn.set(field.name, {memory_of_fields_[i].data(), shape, field.type});
      input.fields.set(field.name, {memory_of_fields_[i].data(),
                                    field.of(layout_.micro_batches(), layout_.samples), field.type});
    }
    corpus.batch(batch * layout_.batch, drawn);
    const Tensor& targets = drawn.at(field::targets);
    const auto* first = targets.as<std::int32_t>();
    input.valid = std::count_if(first, first + targets.count(), [](std::int32_t word) { return word >= 0; });
    return input;
  }

  std::vector<std::vector<std::byte>> memory_of_fields_;
};

}  // namespace mindpipe
