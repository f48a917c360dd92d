#include "layers/mlp.h"

#include "adapters.h"
#include "gradient_check.h"

namespace mindpipe::testing {
namespace {

Subject::Build mlp(const MlpSpec& spec) {
  return [=](Subject& s) {
    s.add(std::make_unique<BranchLayer>(s.context(),
                                        std::make_unique<Mlp>(s.context(), s.unit("unit"), "mlp", spec)));
  };
}

TEST(MlpGradients, OfEveryActivation) {
  for (Activation activation : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact})
    for (bool bias : {false, true}) {
      const Setting setting = activation == Activation::relu ? Setting::for_relu() : Setting{};
      check_gradients(setting, mlp({16, 8, activation, false, bias}));
    }
}

TEST(MlpGradients, OfGatedUnits) {
  check_gradients({}, mlp({16, 24, Activation::silu, true, false}));
  check_gradients({}, mlp({16, 24, Activation::silu, true, true}));
}

TEST(MlpGradients, DifferInRoundingOnlyBetweenShards) {
  check_rounding({}, mlp({16, 24, Activation::gelu, false, true}));
  check_rounding({}, mlp({16, 24, Activation::silu, true, false}));
}

}  // namespace
}  // namespace mindpipe::testing
