#pragma once
#include <memory>
#include <vector>
#include "text_model.h"

#include "comm/communicator.h"
#include "emulated/emulated_backend.h"
#include "state/stage.h"

namespace mindpipe {

/// A model as a rank of a tensor group has it; no memory is taken.
class PaperModel {
 public:
  virtual ~PaperModel() = default;
  virtual const Model& model() const = 0;
};

/// A model that the program knows.
class PaperStage final : public PaperModel {
 public:
  PaperStage(const Config& config, int tensor, int rank)
      : communicator_(*backend_, config.reproducible.tensor, OnPaper{tensor, rank}),
        stage_(config, make_layout(config, {}),
               LayerContext{*backend_, communicator_, compute_dtype(config.train), false, config.seed}, {}) {}
  const Model& model() const override { return stage_.model(); }

 private:
  Memory memory_{Memory::Kind::counted};
  std::unique_ptr<Backend> backend_ = make_pricing_backend(memory_, describe_device("core"));
  Communicator communicator_;
  Stage stage_;
};

/// Parameters of each split whose tensors are longer than what a rank writes at once: whole rows, wide ones,
/// vectors, padded and stacked ones.
class LargeTensors final : public PaperModel {
 public:
  LargeTensors(const Config& config, int tensor, int rank) {
    constexpr int logical = 12;
    const auto unit = [&](const std::vector<ParamSpec>& params) {
      Unit& made = model_.add_unit("unit" + std::to_string(model_.units().size()));
      for (const ParamSpec& param : params) made.add(param);
      made.lay_out({logical, logical / tensor, logical / tensor * rank}, 1, 0, compute_dtype(config.train));
    };
    const auto spec = [](const std::vector<Piece>& pieces, std::int64_t columns, Split split) {
      ParamSpec made;
      made.pieces = pieces;
      made.columns = columns;
      made.split = split;
      return made;
    };
    unit({spec({{"table", 120'000, 19'123}}, 36, Split::out)});
    unit({spec({{"q", 1200}, {"k", 600}, {"v", 600}}, 1500, Split::out),
          spec({{"q.bias", 1200}, {"k.bias", 600}, {"v.bias", 600}}, 0, Split::out),
          spec({{"closing", 700}}, 3600, Split::in), spec({{"norm", 4099}}, 0, Split::none)});
    unit({spec({{"wide.in", 3}}, 2'400'000, Split::in), spec({{"wide.out", 12}}, 1'100'001, Split::out),
          spec({{"wide.none", 2}}, 1'500'003, Split::none)});
    unit({spec({{"long.out", 2'400'000}}, 0, Split::out), spec({{"long.none", 3'000'001}}, 0, Split::none)});
    unit({spec({{"plain", 5000}}, 333, Split::none)});
  }
  const Model& model() const override { return model_; }

 private:
  Model model_;
};

template <class Made>
std::vector<std::unique_ptr<PaperModel>> on_ranks(const Config& config, int tensor) {
  std::vector<std::unique_ptr<PaperModel>> models;
  for (int rank = 0; rank < tensor; ++rank) models.push_back(std::make_unique<Made>(config, tensor, rank));
  return models;
}
inline std::vector<std::unique_ptr<PaperModel>> large_tensors_of_ranks(const Config& config, int tensor) {
  return on_ranks<LargeTensors>(config, tensor);
}
inline std::vector<std::unique_ptr<PaperModel>> model_of_ranks(Config config, int tensor) {
  config.grid.tensor = config.reproducible.tensor = tensor;
  return on_ranks<PaperStage>(config, tensor);
}

/// Small models: tied and untied tables, padded ones, stacked parameters, every split.
inline std::vector<Config> models_on_paper() {
  std::vector<Config> all;
  for (int style = 0; style < 3; ++style) {
    Config c;
    c.run.dir = "unused";
    c.data.train = {{"synthetic:arithmetic", 1}};
    c.model.gpt.layers = 2;
    c.model.gpt.width = 48;
    c.model.gpt.heads = 12;
    c.model.gpt.mlp_width = 96;
    c.model.gpt.context = c.data.sequence = 24;
    c.model.gpt.vocabulary = 125;
    c.train.batch = c.train.micro_batch = 2;
    c.train.precision = style == 1 ? Precision::bf16 : Precision::f32;
    if (style == 1) {
      c.model.gpt.positions = Positions::rotary;
      c.model.gpt.norm = ModelNorm::rms;
      c.model.gpt.mlp = MlpKind::swiglu;
      c.model.gpt.bias = c.model.gpt.tied = false;
      c.optimizer.kind = OptimizerKind::sgd;
    }
    if (style == 2) become_transformer(c);
    all.push_back(resolve(c));
  }
  return all;
}

}  // namespace mindpipe
