// ranks: 2 4
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <functional>

#include "comm/group.h"
#include "layers/attention.h"
#include "layers/classifier.h"
#include "layers/embedding.h"
#include "layers/mlp.h"
#include "layers/patches.h"
#include "layers/picked_classifier.h"
#include "make_backend.h"

/// Networks of layers that no model of tests/runtime has: on several tensor ranks, with the sequence cut and
/// whole, they have the bits that one rank has with all logical shards.
namespace mindpipe {
namespace {

constexpr int logical = 4;
constexpr std::int64_t width = 16, samples = 2, rows = 8;

std::vector<std::byte> bytes_of_tensor(const Tensor& t) {
  const auto* data = t.as<std::byte>();
  return {data, data + t.bytes()};
}

/// Layers on one rank's shards, and a batch for them.
struct Network {
  using Build = std::function<void(Network&)>;

  Network(Backend& on, Communicator& tensor, DType dtype, bool sequence_parallel, const Build& build)
      : backend(on),
        context{on, tensor, dtype, sequence_parallel, 5},
        kept(on.memory(), MemoryClass::activations, std::size_t{8} << 20),
        scratch(on.memory(), MemoryClass::workspace, std::size_t{8} << 20),
        batch(on.memory(), MemoryClass::boundary, std::size_t{1} << 20),
        tape(on, kept, scratch) {
    tape.batch.samples = samples;
    tape.loss_factor = 0.25;
    build(*this);
    for (const auto& unit : units) {
      unit->lay_out({logical, tensor.local_shards(), tensor.first_shard()},
                    sequence_parallel ? tensor.local_shards() : logical, 0, dtype);
      unit->allocate_values(on.memory());
      unit->gradients().allocate(on.memory());
      for (int use = 0; use < unit->uses(); ++use) on.fill({unit->gradients().accumulators(use), 0});
    }
  }

  Unit& unit(const std::string& name) {
    for (const auto& unit : units)
      if (unit->name() == name) return *unit;
    return *units.emplace_back(std::make_unique<Unit>(name));
  }
  template <class AnyLayer, class... Parts>
  void add(Parts&&... parts) {
    layers.push_back(std::make_unique<AnyLayer>(context, std::forward<Parts>(parts)...));
  }
  Tensor numbers(const std::string& name, const Shape& shape, int below, int least = 0) {
    const Tensor t = batch.take(shape, DType::i32);
    for (std::int64_t i = 0; i < t.count(); ++i)
      t.as<std::int32_t>()[i] =
          least +
          static_cast<std::int32_t>(RandomStream{3, purpose_of(name)}.word(static_cast<std::uint64_t>(i)) %
                                    static_cast<unsigned>(below));
    return t;
  }
  void judge(const Shape& shape, int classes) {
    tape.batch.fields.set(field::targets, numbers("targets", shape, classes + 1, -1));
    tape.losses = batch.take(shape, DType::f32);
    tape.hits = batch.take({Hits::places}, DType::f64);
    backend.fill({tape.hits, 0});
  }
  /// Forward and backward, then once more to evaluate.
  void run() {
    Boundary b;
    for (const auto& layer : layers) b = layer->forward(b, tape);
    b = {};
    for (std::size_t i = layers.size(); i-- > 0;) b = layers[i]->backward(b, tape);
    losses = bytes_of_tensor(tape.losses);
    tape.clear();
    tape.mode = Tape::Mode::evaluate;
    b = {};
    for (const auto& layer : layers) b = layer->forward(b, tape);
    evaluated = bytes_of_tensor(tape.losses);
    hits = bytes_of_tensor(tape.hits);
  }

  Backend& backend;
  LayerContext context;
  Arena kept, scratch, batch;
  Tape tape;
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<std::byte> losses, evaluated, hits;
};

/// BERT's parts.
void masked(Network& n) {
  EmbeddingSpec embedding{.vocabulary = 90, .width = width, .positions = 12, .dropout = 0.1, .uses = 2};
  embedding.factor = 4;
  embedding.types = 2;
  embedding.typed = true;
  embedding.padding = 5;
  embedding.first_position = 2;
  embedding.norm = NormSpec{};
  n.add<Embedding>(n.unit("table"), n.unit("positions"), "embedding", embedding);
  const auto block = [&](const std::string& name, std::unique_ptr<Branch> branch) {
    Unit& unit = n.unit(name);
    n.add<PostNormBlock>(Norm(n.context, unit, "norm", NormKind::layer, width, 1e-5, true), std::move(branch),
                         residual_bias(unit, "output", width), 0.1, name);
  };
  AttentionSpec attention{.width = width, .heads = 4, .key_value_heads = 4, .head_width = 4, .causal = false};
  block("attention",
        std::make_unique<SelfAttention>(n.context, n.unit("attention"), "attention", "attention", attention));
  block("mlp", std::make_unique<Mlp>(n.context, n.unit("mlp"), "mlp",
                                     MlpSpec{width, 24, Activation::gelu_exact, false, true}));
  SoftmaxSpec softmax{.vocabulary = 90, .width = width, .uses = 2, .use = 1, .bias = true};
  n.add<PickedClassifier>(n.unit("table"), n.unit("head"), softmax,
                          TransformSpec{true, Activation::gelu_exact, NormSpec{}});
  n.tape.batch.fields.set(field::tokens, n.numbers("tokens", {samples, rows}, 90));
  n.tape.batch.fields.set(field::types, n.numbers("types", {samples, rows}, 2));
  n.tape.batch.fields.set(field::picked, n.numbers("picked", {samples, 3}, static_cast<int>(rows) + 1, -1));
  n.judge({samples, 3}, 90);
}

/// ViT's parts: five rows, padded to eight.
void pictures(Network& n) {
  const PictureShape shape{2, 4, 4, 2, {0.5f, 0.4f}, {0.5f, 0.25f}};
  n.add<PatchEmbedding>(n.unit("embedding"), "embedding", PatchSpec{shape, width, 0.1});
  Unit& unit = n.unit("mlp");
  auto mlp = std::make_unique<Mlp>(n.context, unit, "mlp", MlpSpec{width, 24, Activation::relu, false, true});
  n.add<ResidualBlock>(Norm(n.context, unit, "norm", NormKind::layer, width, 1e-5, true), std::move(mlp),
                       residual_bias(unit, "output", width), 0.1, "mlp");
  n.add<PickedClassifier>(n.unit("table"), n.unit("head"),
                          SoftmaxSpec{.vocabulary = 10, .width = width, .bias = true},
                          TransformSpec{false, Activation::none, NormSpec{}});
  const Tensor pixels = n.batch.take({samples, 2 * 4, 4}, DType::u8);
  for (std::int64_t i = 0; i < pixels.count(); ++i)
    pixels.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i);
  n.tape.batch.fields.set(field::picture, pixels);
  n.judge({samples, 1}, 10);
}

/// A post-norm decoder's ends: sines in front, no norm behind.
void sines(Network& n) {
  EmbeddingSpec embedding{.vocabulary = 90, .width = width, .dropout = 0.1};
  embedding.factor = 4;
  embedding.sinusoids = Sinusoids::up_to_base;
  embedding.first_position = 2;
  n.add<Embedding>(n.unit("embedding"), n.unit("positions"), "embedding", embedding);
  ClassifierSpec head{
      .vocabulary = 90, .width = width, .label_smoothing = 0.1, .bias = true, .normed = false};
  n.add<Classifier>(n.unit("table"), n.unit("head"), head);
  n.tape.batch.fields.set(field::tokens, n.numbers("tokens", {samples, rows}, 90));
  n.judge({samples, rows}, 90);
}

/// Values of one rank with all shards, each a function of its name and place.
void draw_values(Network& whole) {
  for (const auto& unit : whole.units) {
    Tensor flat = unit->flat_values();
    std::vector<float> numbers(static_cast<std::size_t>(flat.count()));
    RandomStream{7, purpose_of(unit->name())}.normals(0, numbers.size(), 0.3f, numbers.data());
    whole.backend.convert({{numbers.data(), flat.shape, DType::f32}, flat});
  }
}
void take_values(const Network& whole, Network& part) {
  for (std::size_t u = 0; u < part.units.size(); ++u)
    for (int p = 0; p < static_cast<int>(part.units[u]->params().size()); ++p)
      for (int s = 0; s < part.units[u]->local_shards(p); ++s) {
        const bool is_split = part.units[u]->params()[p].split != Split::none;
        const int first = is_split ? part.units[u]->shards().first : 0;
        part.backend.copy(whole.units[u]->value(p, first + s), part.units[u]->value(p, s));
      }
}

/// Refuses other bits than those of the whole in what this rank has of a parameter's gradient.
void expect_gradient(const Unit& whole, const Unit& part, int param, int use, bool sequence_parallel) {
  const ParamSpec& spec = part.params()[param];
  for (int s = 0; s < part.local_shards(param); ++s) {
    const Tensor all = whole.gradients().of(param, use,
                                            spec.split == Split::none ? s : part.shards().first + s),
                 here = part.gradients().of(param, use, s);
    SCOPED_TRACE(part.name() + "." + spec.pieces[0].name + ", use " + std::to_string(use));
    if (sequence_parallel && spec.form == Form::rows) {
      const std::int64_t parts = part.shards().local, first = part.shards().first;
      ASSERT_EQ(here.shape[0], parts);
      for (std::int64_t i = 0; i < parts; ++i)
        EXPECT_TRUE(bytes_of_tensor(here.at(i)) == bytes_of_tensor(all.at(first + i)));
    } else if (sequence_parallel && spec.form == Form::positions) {
      // Each row is one rank's, and zeros elsewhere.
      std::vector<float> sum(static_cast<std::size_t>(here.count()));
      MPI_Allreduce(here.data, sum.data(), static_cast<int>(sum.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      EXPECT_TRUE(sum == std::vector<float>(all.as<float>(), all.as<float>() + all.count()));
    } else {
      EXPECT_TRUE(bytes_of_tensor(here) == bytes_of_tensor(all));
    }
  }
}

class LayerRanks : public ::testing::TestWithParam<std::pair<const char*, void (*)(Network&)>> {};

TEST_P(LayerRanks, HaveTheBitsOfOneRankWithAllShards) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (bool sequence_parallel : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, sequence {}", dtype, sequence_parallel ? "cut" : "whole"));
      Memory memory{Memory::Kind::host};
      const auto backend = make_cpu_backend(memory, 1, "auto");
      Waiting waiting;
      Communicator alone(*backend, logical),
          group(*backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), logical, Axis::tensor);
      Network whole(*backend, alone, dtype, false, GetParam().second),
          part(*backend, group, dtype, sequence_parallel, GetParam().second);
      draw_values(whole);
      take_values(whole, part);
      whole.run();
      part.run();
      EXPECT_TRUE(part.losses == whole.losses);
      EXPECT_TRUE(part.evaluated == whole.evaluated);
      EXPECT_TRUE(part.hits == whole.hits);
      const auto* loss = reinterpret_cast<const float*>(whole.losses.data());
      EXPECT_GT(*std::max_element(loss, loss + whole.losses.size() / sizeof(float)), 0)
          << "nothing is judged";
      for (std::size_t u = 0; u < part.units.size(); ++u)
        for (int p = 0; p < static_cast<int>(part.units[u]->params().size()); ++p)
          for (int use = 0; use < part.units[u]->uses(); ++use)
            expect_gradient(*whole.units[u], *part.units[u], p, use, sequence_parallel);
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, LayerRanks,
                         ::testing::Values(std::pair{"masked", &masked}, std::pair{"pictures", &pictures},
                                           std::pair{"sines", &sines}),
                         [](const auto& network) { return std::string(network.param.first); });

}  // namespace
}  // namespace mindpipe
