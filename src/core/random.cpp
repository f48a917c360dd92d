#include "core/random.h"

#include <cmath>
#include <numbers>

namespace mindpipe {
namespace {

double open_unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

}  // namespace

double RandomStream::uniform(std::uint64_t element) const { return open_unit(word(element)); }

double RandomStream::normal(std::uint64_t element) const {
  const auto four = words(element / 4);
  const int pair = static_cast<int>(element % 4) & 2;
  const double radius = std::sqrt(-2.0 * std::log(open_unit(four[pair])));
  const double angle = 2.0 * std::numbers::pi * open_unit(four[pair + 1]);
  return radius * ((element & 1) ? std::sin(angle) : std::cos(angle));
}

}  // namespace mindpipe
