#pragma once
#include <functional>
#include <string>

#include "core/check.h"

namespace mindpipe {

struct Config;

/// Where a setting was written, for complaints: "configs/run.yaml:12", "command line", ...
using Origin = std::function<std::string(const std::string& key)>;

/// "a.yaml:3: model.heads is 5 ..." for the first key of a sentence.
struct Complaints {
  const Origin& origin;

  template <class... Parts>
  void require(bool holds, const std::string& key, fmt::format_string<Parts...> sentence,
               Parts&&... parts) const {
    MP_REQUIRE(holds, Exit::bad_configuration, "{}: {} {}", origin(key), key,
               fmt::format(sentence, std::forward<Parts>(parts)...));
  }
};

/// A setting whose number is cut into equal parts, one for each logical tensor shard.
struct Extent {
  const char* key;
  int number;
};

/// Puts numbers in place of what was left to the program.
void fill_in(Config& config);
/// Refuses settings that are each allowed but contradict each other.
void check_together(const Config& config, const Origin& origin);

}  // namespace mindpipe
