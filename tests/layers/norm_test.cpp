#include "adapters.h"
#include "gradient_check.h"

namespace mindpipe::testing {
namespace {

Subject::Build norm(NormKind kind, bool offset) {
  return [=](Subject& s) {
    s.add(std::make_unique<NormLayer>(Norm(s.context(), s.unit("unit"), "norm", kind, 16, 1e-5, offset)));
  };
}

TEST(NormGradients, OfALayerNorm) {
  check_gradients({}, norm(NormKind::layer, true));
  check_gradients({}, norm(NormKind::layer, false));
}

TEST(NormGradients, OfAnRmsNorm) {
  check_gradients({}, norm(NormKind::rms, true));
  check_gradients({}, norm(NormKind::rms, false));
}

TEST(NormGradients, DifferInRoundingOnlyBetweenShards) {
  check_rounding({}, norm(NormKind::layer, true));
  check_rounding({}, norm(NormKind::rms, false));
}

}  // namespace
}  // namespace mindpipe::testing
