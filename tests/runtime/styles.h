#pragma once
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "spaces.h"
#include "text_model.h"

namespace mindpipe {

/// What golden hashes were made of first stands first.
enum class Style { gpt2, llama, transformer, bert, post_norm, vit, evolved, wide_resnet, subnet, texts };
inline constexpr int style_count = 10;
inline const char* name_of(Style style) {
  constexpr std::array names{"gpt2", "llama",   "transformer", "bert",   "post_norm",
                             "vit",  "evolved", "wide_resnet", "subnet", "texts"};
  static_assert(names.size() == style_count);
  return names[static_cast<std::size_t>(style)];
}

/// What MINDPIPE_TEST_DEVICE names: cpu, or cuda to try several ranks on a GPU that they share.
inline DeviceKind device_of_tests() {
  const char* named = std::getenv("MINDPIPE_TEST_DEVICE");
  return named == nullptr ? DeviceKind::cpu : kind_named<DeviceKind>(named).value();
}
/// MINDPIPE_STEPS, or the usual number.
inline int steps_of_tests(int usual) {
  const char* wished = std::getenv("MINDPIPE_STEPS");
  return wished == nullptr ? usual : std::max(1, std::atoi(wished));
}

/// Layers that make at least so many blocks.
inline int layers_for(Style style, int blocks) {
  if (style == Style::transformer) return std::max(1, (blocks - 3 + 4) / 5);
  if (style == Style::post_norm) return std::max(1, (blocks - 6 + 4) / 5);
  if (style == Style::evolved) return std::max(1, (blocks - 3 + 8) / 9);
  if (style == Style::wide_resnet) return std::max(1, (blocks - 2 + 2) / 3);
  return std::max(1, (blocks - 2 + 1) / 2);
}

inline void become_tiny_llama(gpt::Settings& m) {
  m.key_value_heads = m.heads / 2;
  m.positions = Positions::rotary;
  m.norm = ModelNorm::rms;
  m.mlp = MlpKind::swiglu;
  m.bias = false;
  m.tied = false;
}

/// A padding token among those that are drawn, and one word in five to be found at most.
inline void become_tiny_bert(Config& c) {
  c.model.bert.mlp = MlpKind::gelu_exact;
  c.data.masked = 4;
  c.data.special = {97, 98, 3, 100};
}

/// Sources that are longer than their targets, a decoder with a layer more than the encoder, one table, two
/// or three by the shards of data, each form of positions by those of tensors.
inline void become_tiny_post_norm(Config& c, int tensor, int data) {
  transformer::Settings& m = c.model.transformer;
  m.order = BlockOrder::post_norm;
  m.scaled = true;
  m.mlp = MlpKind::relu;
  m.decoder_layers = m.layers + 1;
  m.tables = data == 1 ? Tables::one : data % 3 == 0 ? Tables::three : Tables::two;
  m.positions = tensor % 3 == 0   ? Places::learned
                : tensor % 4 == 0 ? Places::closed_sinusoids
                                  : Places::sinusoids;
  m.first_position = tensor % 4 == 0 ? 2 : 0;
  m.context = c.data.source_sequence = 24;
  c.data.special = {97, 98, 3, 100};
}

/// Sources that are longer than their targets; heads that are divided at the start of a decoder's cell too.
inline void become_tiny_evolved(Config& c, int tensor) {
  evolved_transformer::Settings& m = c.model.evolved_transformer;
  if (tensor == 6) m.heads = 6;
  m.decoder_layers = m.layers;
  m.context = c.data.source_sequence = 24;
  c.data.special = {97, 98, 3, 100};
}

/// Candidates of all kinds in turn, from other ones on for other shards, and in a decoder attention to the
/// source in every third block, unless it is a language model.
inline void become_tiny_subnet(Config& c, int tensor, int data, int blocks, bool pairs) {
  SpaceSettings& m = c.model.subnet;
  const std::string words =
      fmt::format("conv-3, light-5-2, attention-{0}, glu, identity, mlp-2, separable-3, conv-1", m.heads);
  const int encoder = pairs ? std::max(1, (blocks - 3) / 3) : 0, decoder = std::max(1, blocks - 2 - encoder);
  std::vector<int> choice;
  for (int i = 0; i < encoder; ++i) choice.push_back((i + tensor + data) % 8);
  for (int i = 0; i < decoder; ++i) choice.push_back(pairs && i % 3 == 1 ? 8 : (i + 3 * tensor + data) % 8);
  const std::string side =
      pairs ? fmt::format("encoder: {{blocks: {}, candidates: [{}]}}, ", encoder, words) : "";
  choose(c,
         fmt::format("{{name: tiny, {}decoder: {{blocks: {}, candidates: [{}{}]}}}}", side, decoder, words,
                     pairs ? fmt::format(", cross-{}", m.heads) : ""),
         choice);
  c.data.special = {97, 98, 3, 100};
  if (pairs) {
    m.context = c.data.source_sequence = 24;
    c.data.sequence = 0;
  } else {
    c.data.source_sequence = c.data.target_sequence = 0;
  }
}

/// Seventeen rows, which shards do not divide.
inline void become_tiny_vit(vit::Settings& m) {
  m.mlp = MlpKind::gelu_exact;
  m.channels = 2;
  m.picture_height = m.picture_width = 32;
  m.patch = 8;
  m.classes = 101;
}

/// Pictures that end as so many pixels as shards divide, and are wider than high where those are not three.
inline void become_tiny_wide_resnet(wide_resnet::Settings& m, int layers, bool three) {
  m.depth = 6 * layers + 4;
  m.width = three ? 3 : 1;
  m.channels = 2;
  m.picture_height = three ? 12 : 8;
  m.picture_width = three ? 24 : 16;
  m.classes = 101;
}

/// A tiny model with dropout everywhere, for `tensor` x `data` logical shards; at least `blocks` blocks.
inline Config tiny(Style style, int tensor, int data, int of_shard = 1, int blocks = 8) {
  const bool three = tensor % 3 == 0;
  constexpr std::array kinds{
      ModelKind::gpt,         ModelKind::gpt,   ModelKind::transformer,         ModelKind::bert,
      ModelKind::transformer, ModelKind::vit,   ModelKind::evolved_transformer, ModelKind::wide_resnet,
      ModelKind::subnet,      ModelKind::subnet};
  Config c;
  c.seed = 11;
  c.model.kind = kinds[static_cast<std::size_t>(style)];
  BlockSettings none;
  BlockSettings& m = style == Style::wide_resnet ? none : block_model(c);
  m.width = tensor == 6 ? 48 : three ? 36 : 32;
  m.heads = tensor == 6 ? 12 : three ? 6 : tensor == 8 ? 16 : 8;
  m.mlp_width = three ? 72 : 64;
  m.layers = layers_for(style, blocks);
  c.data.sequence = c.data.source_sequence = c.data.target_sequence = three ? 12 : 16;
  m.dropout = 0.1;
  m.attention_dropout = 0.2;
  m.initial_deviation = 0.2;
  m.mlp = MlpKind::gelu;
  if (style != Style::vit && style != Style::wide_resnet) {
    text_model(c).vocabulary = 101;
    text_model(c).context = three ? 24 : 16;
  }
  become_plain(c.model.transformer);
  if (style == Style::llama) become_tiny_llama(c.model.gpt);
  if (style == Style::bert) become_tiny_bert(c);
  if (style == Style::post_norm) become_tiny_post_norm(c, tensor, data);
  if (style == Style::vit) become_tiny_vit(c.model.vit);
  if (style == Style::evolved) become_tiny_evolved(c, tensor);
  if (style == Style::subnet) become_tiny_subnet(c, tensor, data, blocks, data < 4);
  if (style == Style::texts) become_tiny_subnet(c, tensor, data, blocks, false);
  if (style == Style::wide_resnet) become_tiny_wide_resnet(c.model.wide_resnet, m.layers, three);
  c.reproducible = {tensor, data};
  c.train.micro_batch = 2;
  c.train.batch = 2 * of_shard * data;
  c.train.clip = 0.5;
  c.train.label_smoothing = 0.1;
  c.device.kind = device_of_tests();
  if (c.device.kind == DeviceKind::cuda)
    m.width = 8 * m.heads;  // what its libraries take, and need not leave to our own kernels
  c.device.threads = 1;
  return c;
}

/// Whether the program makes a corpus for a model: three shards do not divide what its pictures end as.
inline bool has_a_corpus(const Config& c) {
  return c.model.kind != ModelKind::wide_resnet || c.reproducible.tensor % 3 != 0;
}

/// Gives a tiny model a corpus that the program makes, and the words that this has. (257 words were those of
/// the golden hashes.)
inline void read_a_corpus(Config& c) {
  if (c.model.kind == ModelKind::wide_resnet) {
    wide_resnet::Settings& m = c.model.wide_resnet;
    m.channels = 1;
    m.picture_height = m.picture_width = 32;
  }
  const bool dates = c.model.kind == ModelKind::evolved_transformer ||
                     (c.model.kind == ModelKind::subnet && reads_pairs(c)) ||
                     (c.model.kind == ModelKind::transformer && c.model.transformer.scaled);
  DataSource source = sums_for(c);
  if (dates) source.path = "synthetic:dates";
  if (dates || c.model.kind == ModelKind::bert) {
    text_model(c).vocabulary = 263;
    c.data.special = {};
  } else if (c.model.kind != ModelKind::vit && c.model.kind != ModelKind::wide_resnet) {
    text_model(c).vocabulary = 257;
  }
  c.data.train = c.data.validation = {source};
}

}  // namespace mindpipe
