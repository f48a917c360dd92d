#pragma once
#include "corpus/files.h"
#include "corpus/token_writer.h"
#include "runtime/worker.h"
#include "spaces.h"
#include "text_model.h"

namespace mindpipe {

/// A number below `bound`, a function of its place.
inline std::int32_t drawn_below(std::int64_t place, int bound) {
  return static_cast<std::int32_t>(
      RandomStream{9, purpose_of("held out"), 0, 0}.word(static_cast<std::uint64_t>(place)) %
      static_cast<std::uint32_t>(bound));
}

/// Files of held-out samples that a model soon gets right in part: most of what they ask for is the same.
class HeldOut {
 public:
  /// A source of exactly so many samples for models of a kind.
  DataSource source(ModelKind kind, std::int64_t samples) const {
    if (kind == ModelKind::transformer || kind == ModelKind::evolved_transformer) return {pairs(samples), 1};
    const bool sees = kind == ModelKind::vit || kind == ModelKind::wide_resnet;
    return {sees ? pictures(samples) : tokens(samples), 1};
  }

 private:
  /// Samples of 8 tokens: 7 and again 7; every third has others, some of the rest one other.
  std::string tokens(std::int64_t samples) const {
    const std::string path = folder_ / ("tokens" + std::to_string(samples));
    TokenWriter writer(path, TokenType::u16);
    for (std::int64_t i = 0; i <= 8 * samples; ++i)
      writer.add({{(i / 8 % 3 == 1 && i % 2 == 1) || i % 61 == 60 ? drawn_below(i, 250) : 7}});
    writer.end_document();
    writer.finish();
    return path;
  }
  /// Lines of which the last tenth is held out: every other one asks for "aaa", others for letters of their
  /// own.
  std::string pairs(std::int64_t samples) const {
    std::string text;
    for (std::int64_t i = 0; i < 10 * samples; ++i) {
      std::string target = i % 2 == 0 ? "aaa" : "a";
      if (i % 2 == 1) target += static_cast<char>('a' + drawn_below(i, 26));
      text += std::string(static_cast<std::size_t>(1 + i % 7), static_cast<char>('a' + i % 26)) + "\t" +
              target + "\n";
    }
    write_file(folder_ / (std::to_string(samples) + ".tsv"), text);
    return folder_ / (std::to_string(samples) + ".tsv");
  }
  /// Pictures of 8 x 8 pixels, most with label 3 of 30.
  std::string pictures(std::int64_t samples) const {
    const auto number = [](std::int64_t n) {
      std::string bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 255);
      return bytes;
    };
    std::string pixels = number(2051) + number(samples) + number(8) + number(8),
                labels = number(2049) + number(samples);
    for (std::int64_t i = 0; i < 64 * samples; ++i) pixels += static_cast<char>(drawn_below(i, 256));
    for (std::int64_t i = 0; i < samples; ++i)
      labels += static_cast<char>(i % 3 == 1 ? drawn_below(i, 30) : 3);
    const std::string path = folder_ / (std::to_string(samples) + "-images-idx3-ubyte");
    write_file(path, pixels);
    write_file(folder_ / (std::to_string(samples) + "-labels-idx1-ubyte"), labels);
    return path;
  }

  Folder folder_;
};

/// A small model of a kind that reads such samples: six micro-batches of a sample, six logical data shards.
inline Config model_for(ModelKind kind, const DataSource& source) {
  Config c;
  c.model.kind = kind;
  if (kind == ModelKind::subnet)
    choose(c, "{name: three, decoder: {blocks: 3, candidates: [attention-4, conv-3, mlp-2]}}", {0, 1, 2});
  if (kind != ModelKind::wide_resnet) {
    BlockSettings& blocks = block_model(c);
    blocks.layers = 2;
    blocks.width = 32;
    blocks.heads = 4;
    blocks.mlp_width = 64;
  }
  const auto see = [](PictureSettings& m) {
    m.channels = 1;
    m.picture_height = m.picture_width = 8;
    m.classes = 30;
  };
  if (kind == ModelKind::vit) {
    see(c.model.vit);
    c.model.vit.patch = 4;
  } else if (kind == ModelKind::wide_resnet) {
    see(c.model.wide_resnet);
    c.model.wide_resnet.depth = 10;
    c.model.wide_resnet.width = 1;
  } else {
    text_model(c).context = 8;
    text_model(c).vocabulary = 260;
    c.data.masked = kind == ModelKind::bert ? 3 : 0;
  }
  c.data.train = c.data.validation = {source};
  c.train.batch = 6;
  c.train.micro_batch = 1;
  c.reproducible.data = 6;
  c.reproducible.tensor = 2;
  c.device.threads = 1;
  return resolve(c);
}

/// Steps until some targets are right and others are not.
inline void learn_in_part(Worker& worker) {
  const Config& config = worker.config();
  Corpus corpus(config.data, Subset::validation, fields_of(config), config.seed);
  const int steps = config.model.kind == ModelKind::transformer           ? 40
                    : config.model.kind == ModelKind::evolved_transformer ? 16
                                                                          : 12;
  for (int step = 0; step < steps; ++step) {
    worker.step(corpus, step, std::int64_t{step} * config.train.batch, 3e-3);
    worker.steps().remaining();
  }
}

inline Corpus held_out_once(const Config& config) {
  return Corpus::once(config.data, Subset::validation, fields_of(config), config.seed);
}
inline std::int64_t batches_of(const Corpus& corpus, const Config& config) {
  return (corpus.samples() + config.train.batch - 1) / config.train.batch;
}

}  // namespace mindpipe
