#pragma once
#include <string>

namespace mindpipe {

/// Says what is wrong with the sums over `leaves` logical shards that `ranks` ranks have in order, or
/// nothing. Proved by symbols: what every rank's counter does with leaf after leaf, and the additions of all
/// ranks' roots, are additions that the one tree has, and end with the sum of all leaves, each once.
std::string fault_of_tree(int leaves, int ranks);
/// Fails where there is something.
void require_tree(int leaves, int ranks);

}  // namespace mindpipe
