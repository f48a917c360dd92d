#include "supernet/subnet.h"

#include <algorithm>

#include "core/text.h"

namespace mindpipe {

std::string written(const std::vector<std::uint8_t>& choice) {
  return joined({choice.begin(), choice.end()});
}

std::string candidate_name(int block, int number) { return fmt::format("blocks.{}.{}", block, number); }

int unit_of(const std::vector<Candidate>& candidates, int number) {
  if (!has_parameters(candidates[number])) return -1;
  return static_cast<int>(std::count_if(candidates.begin(), candidates.begin() + number, has_parameters));
}

}  // namespace mindpipe
