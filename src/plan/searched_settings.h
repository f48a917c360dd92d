#pragma once
#include <string>
#include <vector>

#include "config/models/table.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// A setting of a layout that a search may choose.
struct SearchedSetting {
  const char* key;
  bool SearchFreedom::*free;
  std::string (*value)(const LayoutChoice&);
  bool of_steps, of_subnets;  ///< which kinds of training have it
  /// Whether it is worth saying of a layout: not where every other value would be the same; null: always.
  bool (*is_said)(const LayoutChoice&) = nullptr;
  bool is_for_the_asking = false;  ///< whether it is searched only where a file leaves it open
  bool is_compared = true;         ///< whether its other values are other ways to run a model

  /// Whether it is chosen with what becomes of tapes.
  bool is_of_tapes() const {
    return free == &SearchFreedom::recompute || free == &SearchFreedom::swap || free == &SearchFreedom::cuts;
  }
  /// Whether a model of this kind has it.
  bool is_of(const ModelConfig& model) const {
    return row_of(model.kind).trains_subnets ? of_subnets : of_steps;
  }
};
const std::vector<SearchedSetting>& searched_settings();

/// "grid.pipeline=4", "grid.data=2", ...: a layout as settings; those alone that one is free to choose, where
/// they are not what a file has that leaves them out.
std::vector<std::string> settings_with(const LayoutChoice& layout, const SearchFreedom& free);
/// The settings as one line.
std::string words_of(const LayoutChoice& layout, const SearchFreedom& free);

}  // namespace mindpipe
