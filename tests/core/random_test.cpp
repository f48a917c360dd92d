#include "core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mindpipe {
namespace {

TEST(Random, PhiloxGivesTheKnownAnswersOfItsAuthors) {  // Random123's kat_vectors, philox4x32 10
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, ARangeOfNormalsIsWhatItsElementsAreAlone) {
  const RandomStream stream{7, purpose_of("weight"), 3, 5};
  std::vector<float> range(37);
  stream.normals(11, range.size(), 0.5f, range.data());
  for (std::size_t i = 0; i < range.size(); ++i) {
    float alone = 0;
    stream.normals(11 + i, 1, 0.5f, &alone);
    EXPECT_EQ(range[i], alone);
  }
}

TEST(Random, NormalsHaveTheMomentsAndTailsOfTheNormalDistribution) {
  const RandomStream stream{1, 2, 0, 0};
  constexpr std::size_t n = 400'000;
  std::vector<float> x(n);
  stream.normals(0, n, 1, x.data());
  double mean = 0, square = 0, fourth = 0, beyond_two = 0;
  for (float v : x) {
    mean += v;
    square += v * v;
    fourth += std::pow(v, 4);
    beyond_two += std::abs(v) > 2;
  }
  EXPECT_NEAR(mean / n, 0, 0.006);
  EXPECT_NEAR(square / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_NEAR(beyond_two / n, 0.0455, 0.0015);
}

TEST(Random, StreamsOfOtherNamesStepsAndSamplesDiffer) {
  const RandomStream stream{1, 2, 3, 4};
  for (const RandomStream& other : {RandomStream{2, 2, 3, 4}, RandomStream{1, 3, 3, 4},
                                    RandomStream{1, 2, 4, 4}, RandomStream{1, 2, 3, 5}})
    EXPECT_NE(stream.words(0), other.words(0));
}

}  // namespace
}  // namespace mindpipe
