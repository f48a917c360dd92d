#pragma once
#include "kernels/mirror.h"

/// What the cases of this folder share. The including test says what the GPU is: class Cuda, a fixture with
/// `pairing()`, and for_orders(run), which calls run() for every order in which its threads can be made to
/// run.
namespace mindpipe::testing {

inline const Dropout drop{.probability = 0.3f,
                          .stream = {.seed = 5, .purpose = purpose_of("dropout"), .step = 9, .sample = 40}};

/// make(dtype, skew) runs one operation on fresh operands and returns its outputs as the GPU has them. For
/// every number type: they have the same bits in every order of threads, and at addresses that are not
/// aligned.
template <class Fixture, class Make>
void for_kinds(Fixture& fixture, const Make& make) {
  for (DType dtype : number_types) {
    SCOPED_TRACE(name_of(dtype));
    std::vector<Operand> first;
    const auto check = [&](std::size_t skew) {
      SCOPED_TRACE("skew " + std::to_string(skew));
      const std::vector<Operand> got = make(dtype, skew);
      if (first.empty()) first = got;
      ASSERT_EQ(got.size(), first.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_bits(got[i], first[i])) << "output " << i << " has other bits";
    };
    fixture.for_orders([&] { check(0); });
    check(1);
  }
}

inline std::vector<Operand> fetched(const std::vector<const Mirror*>& outputs) {
  std::vector<Operand> all;
  for (const Mirror* output : outputs) all.push_back(output->fetched());
  return all;
}

/// Names of operands make their numbers.
struct Maker {
  Pairing& pairing;
  DType dtype;
  std::size_t skew;
  Mirror random(const Shape& shape, std::string_view name, double deviation = 1) const {
    return Mirror(pairing, Operand::random(shape, dtype, name, deviation, skew), skew);
  }
  Mirror wide(const Shape& shape, std::string_view name) const {
    return Mirror(pairing, Operand::random(shape, wide_of(dtype), name, 1, skew), skew);
  }
  Mirror empty(const Shape& shape) const { return Mirror(pairing, Operand(shape, dtype, skew), skew); }
  Mirror empty_wide(const Shape& shape) const {
    return Mirror(pairing, Operand(shape, wide_of(dtype), skew), skew);
  }
};

}  // namespace mindpipe::testing

using namespace mindpipe;
using namespace mindpipe::testing;
