#include "core/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace mindpipe {

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;  // the first that is set decides
    const std::string_view locale = value;
    for (const char* ending : {"UTF-8", "utf-8", "UTF8", "utf8"})
      if (locale.find(ending) != std::string_view::npos) return true;
    return false;
  }
  return false;
}

std::string bar(double share, int columns, bool utf8) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns));
  std::string text;
  for (int i = 0; i < columns; ++i)
    if (utf8) text += i < full ? "█" : "░";
    else text += i < full ? '#' : '.';
  return text;
}

}  // namespace mindpipe
