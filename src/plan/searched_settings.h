#pragma once
#include <string>
#include <vector>

#include "plan/layout_search.h"

namespace mindpipe {

/// A setting of a layout that a search may choose.
struct SearchedSetting {
  const char* key;
  bool SearchFreedom::*free;
  std::string (*value)(const LayoutChoice&);
  bool of_steps, of_subnets;  ///< which kinds of training have it
  /// Whether a layout's value is another than that of a file which leaves the setting out; null: it may be.
  bool (*is_said)(const LayoutChoice&) = nullptr;
  bool is_for_the_asking = false;  ///< whether it is searched only where a file leaves it open
  bool is_compared = true;         ///< whether its other values are other ways to run a model
};
const std::vector<SearchedSetting>& searched_settings();

/// Whether a search of this freedom chooses the setting. Cuts are chosen with the fates of tapes, too.
bool is_free(const SearchedSetting& setting, const SearchFreedom& free);

}  // namespace mindpipe
