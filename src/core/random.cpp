#include "core/random.h"

#include <cmath>
#include <numbers>

namespace mindpipe {
namespace {

double open_unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

}  // namespace

double RandomStream::uniform(std::uint64_t element) const { return open_unit(word(element)); }

void RandomStream::normals(std::uint64_t first, std::uint64_t count, float deviation, float* out) const {
  std::uint64_t block = ~std::uint64_t{0};
  float four[4];
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t element = first + i;
    if (element / 4 != block) {
      block = element / 4;
      const auto w = words(block);
      for (int pair = 0; pair < 4; pair += 2) {
        const float radius = deviation * std::sqrt(-2.0f * std::log(static_cast<float>(open_unit(w[pair]))));
        const float angle = static_cast<float>(2 * std::numbers::pi) * static_cast<float>(open_unit(w[pair + 1]));
        four[pair] = radius * std::cos(angle);
        four[pair + 1] = radius * std::sin(angle);
      }
    }
    out[i] = four[element % 4];
  }
}

}  // namespace mindpipe
