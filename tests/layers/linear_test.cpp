#include "adapters.h"
#include "gradient_check.h"

namespace mindpipe::testing {
namespace {

Subject::Build linear(Split split, bool bias) {
  return [=](Subject& s) {
    s.add(std::make_unique<LinearLayer>(s.context(), s.unit("unit"),
                                        LinearSpec{{{"map", 24}}, 16, split, bias}));
  };
}

TEST(LinearGradients, OfAnUndividedMap) {
  check_gradients({}, linear(Split::none, true));
  check_gradients({}, linear(Split::none, false));
}

TEST(LinearGradients, OfAMapDividedByItsOutputs) {
  check_gradients({}, linear(Split::out, true));
  check_gradients({}, linear(Split::out, false));
}

TEST(LinearGradients, OfAMapDividedByItsInputs) { check_gradients({}, linear(Split::in, false)); }

TEST(LinearGradients, ThroughEveryActivation) {
  for (Activation activation :
       {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact}) {
    const Setting setting = activation == Activation::relu ? Setting::for_relu() : Setting{};
    check_gradients(setting, [=](Subject& s) {
      s.add(std::make_unique<ActivatedPair>(s.context(), s.unit("unit"), 16, 8, activation));
    });
  }
}

TEST(LinearGradients, DifferInRoundingOnlyBetweenShards) {
  for (Split split : {Split::none, Split::out, Split::in})
    check_rounding({}, linear(split, split != Split::in));
}

TEST(Linear, RefusesABiasBehindASum) { EXPECT_THROW(Subject({}, linear(Split::in, true)), Error); }

}  // namespace
}  // namespace mindpipe::testing
