#include "app/torch_oracle.h"

namespace mindpipe {
namespace {

using namespace oracle;

/// A key's bias adds the same to all scores of a query: its gradient is zero, and what is computed there is
/// rounding. Cut out of c_attn's bias, where it is the middle third; gone where it is a tensor.
void remove_key_bias(Named& tensors) {
  for (auto& [name, x] : tensors)
    if (name.ends_with("attn.c_attn.bias")) x.erase(x.begin() + x.size() / 3, x.begin() + x.size() / 3 * 2);
}
Values key_biases(const Named& tensors) {
  Values all;
  for (const auto& [name, x] : tensors)
    if (name.ends_with("attn.c_attn.bias"))
      all.insert(all.end(), x.begin() + x.size() / 3, x.begin() + x.size() / 3 * 2);
  return all;
}

std::vector<double> rising_and_falling(int steps) {
  std::vector<double> rates;
  for (int i = 0; i < steps; ++i)
    rates.push_back(1e-3 * (i < 4 ? (i + 1) / 4.0 : 1.0 - 0.9 * (i - 4) / (steps - 4)));
  return rates;
}

/// Five to ten times what was measured with PyTorch 1.13 and 2.15; of later steps, where AdamW has made
/// rounding larger, more.
struct Limits {
  double logits = 3e-6, loss = 3e-6, gradient = 5e-6, norm = 3e-6, later_loss = 1e-5, later_norm = 1e-4,
         moved = 5e-4;
};

/// Forward, gradients and all steps in f32, as PyTorch has them.
void expect_like_torch(const Task& task, const Limits& limits) {
  const Answer ours = answer_of(task, Precision::f32);
  ASSERT_NO_FATAL_FAILURE(ask_torch({task.folder / ""}, "f32"));
  const SafetensorsFile theirs(task.answered("f32"));
  Values logits;
  for (float x : theirs.floats("logits")) logits.push_back(x);
  logits.resize(ours.logits.size());  // their first sample
  EXPECT_LT(relative(ours.logits, logits), limits.logits);

  Named gradients = ours.gradients, expected = read_named(theirs.path(), "gradient.");
  ASSERT_EQ(gradients.size(), expected.size());
  const double all = norm_of(joined(expected));
  EXPECT_LE(norm_of(key_biases(gradients)), 1e-6 * all);
  remove_key_bias(gradients);
  remove_key_bias(expected);
  double worst = 0;
  for (const auto& [name, gradient] : expected) {
    ASSERT_EQ(gradients.count(name), 1u) << name;
    EXPECT_LT(relative(gradients[name], gradient), limits.gradient) << name;
    worst = std::max(worst, relative(gradients[name], gradient));
  }

  int clipped = 0, unclipped = 0;
  double worst_loss = 0, worst_norm = 0;
  for (int step = 0; step < task.steps(); ++step) {
    const double loss = scalar(theirs, "loss." + std::to_string(step + 1)),
                 norm = scalar(theirs, "norm." + std::to_string(step + 1));
    EXPECT_NEAR(ours.steps[step].loss, loss, step == 0 ? limits.loss : limits.later_loss)
        << "step " << step + 1;
    EXPECT_NEAR(ours.steps[step].gradient_norm / norm, 1, step == 0 ? limits.norm : limits.later_norm)
        << "step " << step + 1;
    worst_loss = std::max(worst_loss, std::abs(ours.steps[step].loss - loss));
    worst_norm = std::max(worst_norm, std::abs(ours.steps[step].gradient_norm / norm - 1));
    (task.config.train.clip > 0 && norm > task.config.train.clip ? clipped : unclipped) += 1;
  }
  EXPECT_GT(clipped, 0) << "no step is clipped: the test shows less than it says";
  EXPECT_GT(unclipped, 0) << "every step is clipped: the test shows less than it says";
  EXPECT_LT(ours.steps.back().loss, ours.steps.front().loss);

  // How far the weights went, against how far PyTorch's went.
  Named weights = ours.weights,
        end = read_named(theirs.path(), "weight." + std::to_string(task.steps()) + "."),
        start = read_named(task.start());
  for (Named* tensors : {&weights, &end, &start}) remove_key_bias(*tensors);
  ASSERT_EQ(weights.size(), end.size());
  double worst_moved = 0;
  for (const auto& [name, w] : end) {
    const double moved = norm_of(minus(w, start[name]));
    ASSERT_GT(moved, 0) << name;
    EXPECT_LT(norm_of(minus(weights[name], w)) / moved, limits.moved) << name;
    worst_moved = std::max(worst_moved, norm_of(minus(weights[name], w)) / moved);
  }
  if (std::getenv("MINDPIPE_SHOW") != nullptr)
    fmt::print(stderr,
               "logits {:.1e}, gradients {:.1e}, losses {:.1e}, norms {:.1e}, moved {:.1e}; {} of {} steps "
               "clipped\n",
               relative(ours.logits, logits), worst, worst_loss, worst_norm, worst_moved, clipped,
               task.steps());
}

TEST(Torch, Gpt2LearnsAsPyTorchDoes) {
  NEEDS_TORCH();
  expect_like_torch(Task(gpt2_style(), 20, 0, rising_and_falling(20)), {});
}

TEST(Torch, LlamaLearnsAsPyTorchDoesWithIgnoredTokensAndSmoothing) {
  NEEDS_TORCH();
  Config config = llama_style();
  config.train.label_smoothing = 0.1;
  config.train.clip = 1.5;
  expect_like_torch(Task(config, 20, 5, rising_and_falling(20)), {});
}

TEST(Torch, SgdWithMomentumAndExactGeluLearnsAsPyTorchDoes) {
  NEEDS_TORCH();
  Config config = gpt2_style();
  config.model.gpt.mlp = MlpKind::gelu_exact;
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.momentum = 0.9;
  config.optimizer.nesterov = true;
  config.optimizer.weight_decay = 0.01;
  std::vector<double> rates = rising_and_falling(20);
  for (double& rate : rates) rate *= 30;
  expect_like_torch(Task(config, 20, 7, rates), {});
}

/// What one precision makes of some weights and tokens.
struct Outcome {
  Values logits, losses;  ///< of the first sample; of every token
  Named gradients;
};
Outcome outcome_of(const Task& task, const std::string& precision, std::size_t logits) {
  const SafetensorsFile file(task.answered(precision));
  const std::vector<float> floats = file.floats("logits"), losses = file.floats("losses");
  return {Values(floats.begin(), floats.begin() + logits), Values(losses.begin(), losses.end()),
          read_named(file.path(), "gradient.")};
}

/// How far some precision is from f32: a relative error for each trial, all gradients as one tensor.
struct Errors {
  Values logits, losses, gradients;

  void add(Outcome outcome, Outcome exact) {
    remove_key_bias(outcome.gradients);
    remove_key_bias(exact.gradients);
    logits.push_back(relative(outcome.logits, exact.logits));
    losses.push_back(relative(outcome.losses, exact.losses));
    gradients.push_back(relative(joined(outcome.gradients), joined(exact.gradients)));
    EXPECT_GT(logits.back(), 1e-4) << "this is not in bf16";
  }
};

void expect_no_larger(const std::string& what, const Values& ours, const Values& theirs,
                      const Values& autocast) {
  const double ratio = norm_of(ours) / norm_of(theirs);
  EXPECT_LE(ratio, 1) << what;
  if (std::getenv("MINDPIPE_SHOW") == nullptr) return;
  fmt::print(stderr,
             "bf16 error of {}: {:.2e}, of PyTorch's model in bf16 {:.3f}, of autocast {:.3f}; of the "
             "trials' models",
             what, norm_of(ours) / std::sqrt(static_cast<double>(ours.size())), ratio,
             norm_of(ours) / norm_of(autocast));
  for (std::size_t i = 0; i < ours.size(); ++i) fmt::print(stderr, " {:.2f}", ours[i] / theirs[i]);
  fmt::print(stderr, "\n");
}

/// The yardstick is model.to(torch.bfloat16), which rounds the residual stream as we do. Errors are random:
/// eight models with tokens of their own, whose ratios scatter by 3 to 4 %, their mean by little more than 1
/// %. The mean with PyTorch 2.15, and with 1.13, which has no fused attention: GPT-2's logits 0.93 and 0.74,
/// losses 0.92 and 0.74, gradients 0.90 and 0.79; Llama's 0.96 and 0.93, 0.97 and 0.90, 0.91 and 0.84. Losses
/// are those of every token: the error of a mean over tokens is too much chance. Of autocast's error, shown
/// beside it, ours is 1.12 to 1.27 times: its residual stream stays f32, which no stream of bf16 can equal.
TEST(Torch, OurBf16IsNoFartherFromF32ThanPyTorchsModelInBf16) {
  NEEDS_TORCH();
  std::deque<Task> tasks;
  std::vector<std::string> folders;
  constexpr int trials = 8;
  for (Config config : {gpt2_style(), llama_style()})
    for (int trial = 0; trial < trials; ++trial, ++config.seed) {
      config.train.batch = 24;
      config.train.micro_batch = 12;
      folders.push_back(tasks.emplace_back(config, 1, 0, Values{0.0}).folder / "");
    }
  ASSERT_NO_FATAL_FAILURE(ask_torch(folders, "f32,bf16,bf16_model"));
  for (int style = 0; style < 2; ++style) {
    Errors ours, model, autocast;
    for (int trial = 0; trial < trials; ++trial) {
      const Task& task = tasks[style * trials + trial];
      const Answer answer = answer_of(task, Precision::bf16);
      const auto theirs = [&](const std::string& precision) {
        return outcome_of(task, precision, answer.logits.size());
      };
      const Outcome exact = theirs("f32");
      ours.add({answer.logits, answer.losses, answer.gradients}, exact);
      model.add(theirs("bf16_model"), exact);
      autocast.add(theirs("bf16"), exact);
    }
    const std::string name = style == 0 ? "GPT-2's " : "Llama's ";
    expect_no_larger(name + "logits", ours.logits, model.logits, autocast.logits);
    expect_no_larger(name + "losses", ours.losses, model.losses, autocast.losses);
    expect_no_larger(name + "gradients", ours.gradients, model.gradients, autocast.gradients);
  }
}

/// What transformers reads beside the weights.
std::string transformers_config(const gpt::Settings& m) {
  const std::string shared =
      fmt::format(R"("vocab_size": {}, "tie_word_embeddings": {})", m.vocabulary, m.tied);
  if (m.positions == Positions::learned)
    return fmt::format(R"({{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], {}, )"
                       R"("n_positions": {}, "n_embd": {}, )"
                       R"("n_layer": {}, "n_head": {}, "layer_norm_epsilon": {}}})",
                       shared, m.context, m.width, m.layers, m.heads, m.norm_epsilon);
  return fmt::format(
      R"({{"model_type": "llama", "architectures": ["LlamaForCausalLM"], {}, "max_position_embeddings": {}, )"
      R"("hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, )"
      R"("num_key_value_heads": {}, "rms_norm_eps": {}, "rope_theta": {}, )"
      R"("attention_bias": {}, "mlp_bias": {}}})",
      shared, m.context, m.width, m.mlp_width, m.layers, m.heads, m.key_value_heads, m.norm_epsilon,
      m.rotary_base, m.bias, m.bias);
}

TEST(Torch, TransformersReadsOurFileOfWeightsAndGivesTheSameLoss) {
  const std::string python = python_with("torch, numpy, transformers", {"/usr/bin/python3", "python3"});
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (MINDPIPE_PYTHON, /usr/bin/python3, python3)";
  Config tied_llama = llama_style();
  tied_llama.model.gpt.tied = true;
  tied_llama.model.gpt.rotary_base = 5000;
  for (const Config& style : {gpt2_style(), llama_style(), tied_llama}) {
    const Task task(style, 1, 6, {0.0});
    Worker worker(task.config, {});
    read_weights(worker, task.start());
    Feeder feeder(worker, task.batches);
    const double loss = feeder.step(0, 0).loss;
    save_weights(worker, task.folder / "model.safetensors");
    write_file(task.folder / "config.json", transformers_config(task.config.model.gpt));
    const std::string script = std::string(MINDPIPE_SOURCE_DIR) + "/tests/oracle/loss_by_transformers.py";
    ASSERT_TRUE(runs("'" + python + "' '" + script + "' '" + (task.folder / "") + "' '" +
                         (task.folder / "input.safetensors") + "' > '" + (task.folder / "loss") + "'",
                     false));
    EXPECT_NEAR(std::stod(read_file(task.folder / "loss")), loss, 1e-5);
  }
}

}  // namespace
}  // namespace mindpipe
