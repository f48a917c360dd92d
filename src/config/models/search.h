#pragma once
#include <vector>

#include "config/kinds.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {

struct SearchConfig;

/// The settings of the search that a supernet is trained for.
std::vector<Setting> search_settings(SearchConfig& search);
void fill_in_search(const Space& space, SearchConfig& search);
void check_search(const Config& config, const Complaints& complain);

/// Steps of a network that is trained by itself.
int steps_of_networks(const Config& config);
/// Whether something is to be found small, or kept below a limit.
bool asks_for(const SearchConfig& search, Objective objective);
/// The most that a network may have of something; 0: no limit.
double limit_of(const SearchConfig& search, Objective objective);

}  // namespace mindpipe
