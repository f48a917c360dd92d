#pragma once
#include <cstdint>
#include <vector>

namespace mindpipe {

/// One subnet of a supernet: its number in the stream, and of each choice block the candidate that it takes.
struct Subnet {
  std::int64_t id = 0;
  std::vector<std::uint8_t> choice;
  bool operator==(const Subnet&) const = default;
};

}  // namespace mindpipe
