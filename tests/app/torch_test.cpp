// thorough
#include "app/torch_oracle.h"
#include "app/torch_styles.h"

namespace mindpipe {
namespace {

using namespace oracle;

/// In networks of pictures, a batch norm's offset that the next norm takes away again: that of candidate 0.
bool is_taken_away(const std::string& name, const Named& all) {
  const bool of_pictures = std::any_of(all.begin(), all.end(),
                                       [](const auto& tensor) { return tensor.first.starts_with("stem"); });
  return of_pictures && name.starts_with("blocks.") && name.ends_with(".0.norm.bias");
}

/// A key's bias adds the same to all scores of a query: its gradient is zero, and what is computed there is
/// rounding. It is the middle third of c_attn's bias, elsewhere a tensor.
bool is_key_bias(const std::string& name, const Named& all) {
  return name.ends_with("k_proj.bias") || name.ends_with("key.bias") || is_taken_away(name, all);
}
void remove_key_bias(Named& tensors) {
  for (auto& [name, x] : tensors)
    if (name.ends_with("attn.c_attn.bias")) x.erase(x.begin() + x.size() / 3, x.begin() + x.size() / 3 * 2);
  const Named all = tensors;
  std::erase_if(tensors, [&](const auto& tensor) { return is_key_bias(tensor.first, all); });
}
Values key_biases(const Named& tensors) {
  Values all;
  for (const auto& [name, x] : tensors) {
    if (name.ends_with("attn.c_attn.bias"))
      all.insert(all.end(), x.begin() + x.size() / 3, x.begin() + x.size() / 3 * 2);
    if (is_key_bias(name, tensors)) all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

std::vector<double> rising_and_falling(int steps) {
  std::vector<double> rates;
  for (int i = 0; i < steps; ++i)
    rates.push_back(1e-3 * (i < 4 ? (i + 1) / 4.0 : 1.0 - 0.9 * (i - 4) / (steps - 4)));
  return rates;
}

/// Three to ten times what was measured with PyTorch 1.13 and 2.15; AdamW makes the rounding of later steps
/// larger, by how much depends on the kernels that PyTorch picks for a processor (cells: 3.4e-6 on an EPYC).
struct Limits {
  double logits = 3e-6, losses = 1e-6, loss = 1e-6, gradient = 5e-6, norm = 2e-6, later_loss = 1e-5,
         later_norm = 3e-6,
         moved = 1e-3;  // AdamW goes by the sign of a gradient near zero
};

/// What the comparison of one training found.
struct Seen {
  double logits = 0, losses = 0, gradient = 0, loss = 0, norm = 0, moved = 0;
  std::string norms;
};

Values values_of(const SafetensorsFile& file, const std::string& name) {
  const std::vector<float> floats = file.floats(name);
  return {floats.begin(), floats.end()};
}

void expect_like_gradients(Named gradients, Named expected, double limit, Seen& seen) {
  ASSERT_EQ(gradients.size(), expected.size());
  EXPECT_LE(norm_of(key_biases(gradients)), 1e-6 * norm_of(joined(expected)));
  remove_key_bias(gradients);
  remove_key_bias(expected);
  for (const auto& [name, gradient] : expected) {
    ASSERT_EQ(gradients.count(name), 1u) << name;
    const double error = relative(gradients[name], gradient);
    EXPECT_LT(error, limit) << name;
    seen.gradient = std::max(seen.gradient, error);
  }
}

void expect_like_steps(const TorchTask& task, const Answer& ours, const SafetensorsFile& theirs,
                       const Limits& limits, Seen& seen) {
  int clipped = 0;
  for (int step = 0; step < task.steps(); ++step) {
    const double loss = scalar(theirs, "loss." + std::to_string(step + 1)),
                 norm = scalar(theirs, "norm." + std::to_string(step + 1)),
                 loss_error = std::abs(ours.steps[step].loss - loss),
                 norm_error = std::abs(ours.steps[step].gradient_norm / norm - 1);
    EXPECT_LE(loss_error, step == 0 ? limits.loss : limits.later_loss) << "step " << step + 1;
    EXPECT_LE(norm_error, step == 0 ? limits.norm : limits.later_norm) << "step " << step + 1;
    seen.loss = std::max(seen.loss, loss_error);
    seen.norm = std::max(seen.norm, norm_error);
    seen.norms += fmt::format(" {:.2f}", norm);
    clipped += task.config.train.clip > 0 && norm > task.config.train.clip;
  }
  EXPECT_GT(clipped, 0) << "no step is clipped: the test shows less than it says";
  EXPECT_LT(clipped, task.steps()) << "every step is clipped: the test shows less than it says";
  EXPECT_LT(ours.steps.back().loss, ours.steps.front().loss);
}

/// How far the weights went, against how far PyTorch's went.
void expect_like_weights(Named weights, Named end, Named start, double limit, Seen& seen) {
  for (Named* tensors : {&weights, &end, &start}) remove_key_bias(*tensors);
  ASSERT_EQ(weights.size(), end.size());
  for (const auto& [name, w] : end) {
    const double moved = norm_of(minus(w, start[name]));
    ASSERT_GT(moved, 0) << name;
    const double error = norm_of(minus(weights[name], w)) / moved;
    EXPECT_LT(error, limit) << name;
    seen.moved = std::max(seen.moved, error);
  }
}

/// Forward, gradients and all steps in f32, as PyTorch, which was asked, has them.
void expect_like_torch(const TorchTask& task, const Limits& limits) {
  const Answer ours = answer_of(task, Precision::f32);
  const SafetensorsFile theirs(task.answered("f32"));
  Seen seen;
  if (!ours.logits.empty()) {
    Values logits = values_of(theirs, "logits");
    logits.resize(ours.logits.size());  // their first sample
    EXPECT_LT(seen.logits = relative(ours.logits, logits), limits.logits);
  }
  EXPECT_LT(seen.losses = relative(ours.losses, values_of(theirs, "losses")), limits.losses);
  expect_like_gradients(ours.gradients, read_named(theirs.path(), "gradient."), limits.gradient, seen);
  expect_like_steps(task, ours, theirs, limits, seen);
  expect_like_weights(ours.weights, read_named(theirs.path(), "weight." + std::to_string(task.steps()) + "."),
                      read_named(task.start()), limits.moved, seen);
  if (std::getenv("MINDPIPE_SHOW") != nullptr)
    fmt::print(stderr,
               "logits {:.1e}, losses {:.1e}, gradients {:.1e}, loss {:.1e}, norm {:.1e}, moved {:.1e}; "
               "norms, clipped above {}:{}\n",
               seen.logits, seen.losses, seen.gradient, seen.loss, seen.norm, seen.moved,
               task.config.train.clip, seen.norms);
}

/// A training that PyTorch does too.
struct Trial {
  const char* name;
  Config config;
  int ignored;  ///< every so many targets one is ignored
  std::vector<double> rates;
};
void PrintTo(const Trial& trial, std::ostream* out) { *out << trial.name; }

Config with(Config config, double clip, double smoothing) {
  config.train.clip = clip;
  config.train.label_smoothing = smoothing;
  return config;
}

Trial sgd_with_momentum() {
  Config config = gpt2_style();
  config.model.gpt.mlp = MlpKind::gelu_exact;
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.momentum = 0.9;
  config.optimizer.nesterov = true;
  config.optimizer.weight_decay = 0.01;
  std::vector<double> rates = rising_and_falling(20);
  for (double& rate : rates) rate *= 30;
  return {"SgdWithMomentumAndExactGelu", config, 7, rates};
}

/// Learned positions and an encoder deeper than the decoder, each table for itself.
Config of_three_tables() {
  Config config = marian_style(Tables::three);
  config.model.transformer.order = BlockOrder::pre_norm;
  config.model.transformer.positions = Places::learned;
  config.model.transformer.scaled = false;
  config.model.transformer.decoder_layers = 1;
  return config;
}

/// Rows padded up for two tensor shards.
Config vit_in_two_shards() {
  Config config = vit_style();
  config.reproducible.tensor = 2;
  return config;
}
Config evolved_in_two_shards() {
  Config config = evolved_style();
  config.data.source_sequence = 14;
  config.reproducible.tensor = 2;
  return config;
}

Config cells_in_two_shards() {
  Config config = cells_style();
  config.data.source_sequence = 14;
  config.reproducible.tensor = 2;
  return config;
}
/// Tables of their own, and heads for two tensor shards.
Config of_pairs_in_two_shards() {
  Config config = of_pairs_style();
  config.model.subnet.tied = false;
  config.data.source_sequence = 14;
  config.reproducible.tensor = 2;
  return config;
}

/// Batch norm of each micro-batch, running statistics of the steps.
Config wide_resnet_in_two_shards() {
  Config config = wide_resnet_style();
  config.reproducible.tensor = 2;
  return config;
}

/// The other words where the picture is halved.
Config picture_words_in_two_shards() {
  Config config = picture_space_style("{blocks: 1, width: 8}, {blocks: 2, width: 12}", {3, 1, 0});
  config.reproducible.tensor = 2;
  return config;
}

std::vector<Trial> trials() {
  const std::vector<double> three{4e-3, 3e-3, 1e-3}, five{0.02, 0.02, 0.01, 0.01, 0.01};
  return {{"Gpt2", gpt2_style(), 0, rising_and_falling(20)},
          {"LlamaWithIgnoredTokensAndSmoothing", with(llama_style(), 1.5, 0.1), 5, rising_and_falling(20)},
          sgd_with_momentum(),
          {"BertWithUnfilledPicks", with(bert_style(), 1.9, 0.1), 0, three},
          {"MarianWithEmptySources", with(marian_style(), 1.3, 0.1), 7, three},
          {"MarianWithTwoTables", with(marian_style(Tables::two), 1.3, 0), 0, three},
          {"PreNormWithThreeTables", with(of_three_tables(), 2, 0.1), 0, three},
          {"M2M100WithEmptySources", with(m2m100_style(), 1.1, 0.1), 7, three},
          {"EvolvedWithEmptySources", with(evolved_style(), 2.4, 0.1), 7, three},
          {"EvolvedInTwoShards",
           with(evolved_in_two_shards(), 2, 0.1),
           0,
           {2e-3, 4e-3, 6e-3, 8e-3, 8e-3, 6e-3, 4e-3, 2e-3}},
          {"CellsWithEmptySources", with(cells_style(), 6, 0.1), 7, three},
          {"CellsInTwoShards", with(cells_in_two_shards(), 6.5, 0.1), 0, three},
          {"EveryWordWithEmptySources", with(of_pairs_style(), 2.4, 0.1), 7, three},
          {"EveryWordInTwoShards", with(of_pairs_in_two_shards(), 2.5, 0), 0, three},
          {"EveryWordOfTexts", with(of_texts_style(), 1.8, 0), 5, three},
          {"Vit", with(vit_style(), 5, 0), 0, three},
          {"VitInTwoShards", with(vit_in_two_shards(), 5, 0.1), 4, three},
          {"WideResnetUnderAccumulation", with(wide_resnet_style(), 2.5, 0), 0, five},
          {"WideResnetInTwoShards", with(wide_resnet_in_two_shards(), 2.3, 0.1), 4, five},
          {"PictureWordsThatKeep", with(picture_words_that_keep(), 1, 0), 0, five},
          {"PictureWordsThatHalve", with(picture_words_that_halve(), 1, 0.1), 4, five},
          {"PictureWordsInTwoShards", with(picture_words_in_two_shards(), 1, 0), 0, five}};
}

/// All trials are set before PyTorch at once.
struct TorchTraining : ::testing::TestWithParam<Trial> {
  static std::map<std::string, std::unique_ptr<TorchTask>> tasks;

  static void SetUpTestSuite() {
    if (python().empty()) return;
    std::vector<std::string> folders;
    for (const Trial& trial : trials()) {
      auto task = std::make_unique<TorchTask>(trial.config, static_cast<int>(trial.rates.size()),
                                              trial.ignored, trial.rates);
      folders.push_back(task->folder / "");
      tasks[trial.name] = std::move(task);
    }
    ask_torch(folders, "f32");
  }
  static void TearDownTestSuite() { tasks.clear(); }
};
std::map<std::string, std::unique_ptr<TorchTask>> TorchTraining::tasks;

TEST_P(TorchTraining, LearnsAsPyTorchDoes) {
  NEEDS_TORCH();
  expect_like_torch(*tasks.at(GetParam().name), {});
}
INSTANTIATE_TEST_SUITE_P(Of, TorchTraining, ::testing::ValuesIn(trials()),
                         [](const auto& info) { return std::string(info.param.name); });

/// Whether a model has pictures.
bool sees(ModelKind kind) { return kind == ModelKind::vit || kind == ModelKind::wide_resnet; }

/// What one precision makes of some weights and tokens.
struct Outcome {
  Values logits, losses;  ///< logits of the first sample, if we have them; losses of every target
  Named gradients;
};
Outcome outcome_of(const TorchTask& task, const std::string& precision, std::size_t logits) {
  const SafetensorsFile file(task.answered(precision));
  Values floats = values_of(file, "logits");
  floats.resize(logits);
  return {floats, values_of(file, "losses"), read_named(file.path(), "gradient.")};
}

/// How far some precision is from f32: a relative error for each trial, all gradients as one tensor.
struct Errors {
  Values logits, losses, gradients;

  void add(Outcome outcome, Outcome exact) {
    remove_key_bias(outcome.gradients);
    remove_key_bias(exact.gradients);
    if (!exact.logits.empty()) logits.push_back(relative(outcome.logits, exact.logits));
    losses.push_back(relative(outcome.losses, exact.losses));
    gradients.push_back(relative(joined(outcome.gradients), joined(exact.gradients)));
    EXPECT_GT(gradients.back(), 1e-4) << "this is not in bf16";
  }
};

/// MINDPIPE_SHOW: errors are printed, those of autocast, which are not compared with ours, beside them.
bool shows_errors() { return std::getenv("MINDPIPE_SHOW") != nullptr; }

void expect_no_larger(const std::string& what, const Values& ours, const Values& theirs,
                      const Values& autocast) {
  const double ratio = norm_of(ours) / norm_of(theirs);
  EXPECT_LE(ratio, 1) << what;
  if (!shows_errors()) return;
  fmt::print(stderr,
             "bf16 error of {}: {:.2e}, of PyTorch's model in bf16 {:.3f}, of autocast {:.3f}; of the "
             "trials' models",
             what, norm_of(ours) / std::sqrt(static_cast<double>(ours.size())), ratio,
             norm_of(ours) / norm_of(autocast));
  for (std::size_t i = 0; i < ours.size(); ++i) fmt::print(stderr, " {:.2f}", ours[i] / theirs[i]);
  fmt::print(stderr, "\n");
}

/// The yardstick is model.to(torch.bfloat16), which rounds the residual stream as we do. Errors are random:
/// eight models with samples of their own, whose ratios scatter by 3 to 4 %, their mean by little more than 1
/// %; ViT's and M2M100's by 8 and 3 %. The mean with PyTorch 2.15, and with 1.13, which has no fused
/// attention: logits 0.93 and 0.74 (GPT-2), 0.96 and 0.93 (Llama); losses 0.91 to 0.97 and 0.70 to 0.91;
/// gradients 0.87 to 0.99 and 0.79 to 0.89. Losses are those of every target: the error of a mean over
/// targets is too much chance. Of autocast's error, shown beside it, ours is 1.12 to 1.3 times, and behind
/// norms of every sum up to 2.8 times: its residual stream stays f32, which no stream of bf16 can equal.
TEST(Torch, OurBf16IsNoFartherFromF32ThanPyTorchsModelInBf16) {
  NEEDS_TORCH();
  const std::pair<const char*, Config> styles[] = {
      {"GPT-2's ", gpt2_style()},      {"Llama's ", llama_style()},      {"BERT's ", bert_style()},
      {"Marian's ", marian_style()},   {"M2M100's ", m2m100_style()},    {"ViT's ", vit_style()},
      {"Evolved's ", evolved_style()}, {"A space's ", of_pairs_style()}, {"WRN's ", wide_resnet_style()}};
  std::deque<TorchTask> tasks;
  std::vector<std::string> folders;
  constexpr int trials = 8;
  for (auto [name, config] : styles)
    for (int trial = 0; trial < trials; ++trial, ++config.seed) {
      // A picture has one loss, a text as many as targets.
      config.train.batch = sees(config.model.kind) ? 240 : 24;
      config.train.micro_batch = config.train.batch / 2;
      folders.push_back(tasks.emplace_back(config, 1, 0, Values{0.0}).folder / "");
    }
  ASSERT_NO_FATAL_FAILURE(ask_torch(folders, shows_errors() ? "f32,bf16,bf16_model" : "f32,bf16_model"));
  auto task = tasks.begin();
  for (const auto& [style, config] : styles) {
    Errors ours, model, autocast;
    for (int trial = 0; trial < trials; ++trial, ++task) {
      const Answer answer = answer_of(*task, Precision::bf16);
      const auto theirs = [&](const std::string& precision) {
        return outcome_of(*task, precision, answer.logits.size());
      };
      const Outcome exact = theirs("f32");
      ours.add({answer.logits, answer.losses, answer.gradients}, exact);
      model.add(theirs("bf16_model"), exact);
      if (shows_errors()) autocast.add(theirs("bf16"), exact);
    }
    const std::string name = style;
    if (!ours.logits.empty()) expect_no_larger(name + "logits", ours.logits, model.logits, autocast.logits);
    expect_no_larger(name + "losses", ours.losses, model.losses, autocast.losses);
    expect_no_larger(name + "gradients", ours.gradients, model.gradients, autocast.gradients);
  }
}

}  // namespace
}  // namespace mindpipe
