#include "models/picture_candidates.h"

#include "config/models/picture_space.h"
#include "layers/identity.h"
#include "models/append_candidates.h"

namespace mindpipe {
namespace {

/// The pictures that a block sees.
PixelWindow window_before(const SpaceSettings& m, int block) {
  PixelWindow window{m.picture_height, m.picture_width, 1, 1, 1};
  for (int i = 0; i < block; ++i)
    if (picture_place(m.space, i).halves) window = {window.height / 2, window.width / 2, 1, 1, 1};
  return window;
}

}  // namespace

PictureCandidateSpec PictureCandidates::spec(int block, int number) const {
  const Candidate& candidate = settings_.space.candidates(block)[number];
  const PicturePlace place = picture_place(settings_.space, block);
  PictureCandidateSpec spec{place.inputs, place.outputs, window_before(settings_, block), {}, false,
                            false,        norm_};
  spec.norm.channels = place.outputs;
  spec.window.stride = place.halves ? 2 : 1;
  if (candidate.kind == CandidateKind::identity) {
    spec.plain = true;
    return spec;
  }
  spec.window.side = candidate.taps();
  if (candidate.kind == CandidateKind::maximum) spec.pool = PoolKind::maximum;
  if (candidate.kind == CandidateKind::average) spec.pool = PoolKind::average;
  if (candidate.kind == CandidateKind::dilated) spec.window.dilation = 2;
  spec.separable = candidate.kind == CandidateKind::separable || candidate.kind == CandidateKind::dilated;
  return spec;
}

std::unique_ptr<Layer> PictureCandidates::make(int block, int number, Unit* unit) const {
  const PictureCandidateSpec made = spec(block, number);
  if (made.plain && !made.halves()) return std::make_unique<Identity>(context_);
  return std::make_unique<PictureCandidate>(context_, unit, made);
}

void PictureCandidates::stream(Model& model, int block) const {
  const PixelWindow behind = window_before(settings_, block + 1);
  model.stream({behind.pixels(), picture_place(settings_.space, block).outputs});
}

void PictureCandidates::append(Model& model, int block, int number) const {
  stream(model, block);
  append_candidate(model, settings_.space, block, number,
                   [this](int of, int candidate, Unit* unit) { return make(of, candidate, unit); });
}

void PictureCandidates::append_choice(Model& model, int block) const {
  stream(model, block);
  mindpipe::append_choice(model, settings_.space, block,
                          [this](int of, int candidate, Unit* unit) { return make(of, candidate, unit); });
}

std::map<std::string, std::vector<std::int64_t>> PictureCandidates::shapes(int block, int number) const {
  if (!has_parameters(settings_.space.candidates(block)[number])) return {};
  const PictureCandidateSpec of = spec(block, number);
  const std::int64_t side = of.pool ? 1 : of.window.side;
  const std::string name = candidate_name(block, number) + ".conv";
  if (of.separable)
    return {{name + ".depthwise.weight", {of.inputs, 1, side, side}},
            {name + ".pointwise.weight", {of.outputs, of.inputs, 1, 1}}};
  return {{name + ".weight", {of.outputs, of.inputs, side, side}}};
}

double PictureCandidates::operations(int block, int number) const {
  const PictureCandidateSpec of = spec(block, number);
  if (!has_parameters(settings_.space.candidates(block)[number])) return 0;
  const auto windows = static_cast<double>(of.window.windows()), inputs = static_cast<double>(of.inputs),
             outputs = static_cast<double>(of.outputs),
             taps = of.pool ? 1.0 : static_cast<double>(of.window.taps());
  return 6 * windows * (of.separable ? taps * inputs + inputs * outputs : taps * inputs * outputs);
}

}  // namespace mindpipe
