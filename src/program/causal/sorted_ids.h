#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mindpipe {

/// Puts a subnet's number in its place among others, unless it is there.
inline void insert_sorted(std::vector<std::int64_t>& ids, std::int64_t id) {
  const auto place = std::lower_bound(ids.begin(), ids.end(), id);
  if (place == ids.end() || *place != id) ids.insert(place, id);
}

inline void erase_sorted(std::vector<std::int64_t>& ids, std::int64_t id) {
  ids.erase(std::lower_bound(ids.begin(), ids.end(), id));
}

}  // namespace mindpipe
