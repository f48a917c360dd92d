#pragma once
#include <string>

namespace mindpipe {

/// Whether the locale's letters are UTF-8 (LC_ALL, LC_CTYPE, LANG): else only ASCII is shown.
bool is_utf8_locale();

/// A bar of `columns` columns of which `share`, 0 to 1, is full: "████░░░░", or "####...." in ASCII.
std::string bar(double share, int columns, bool utf8);

}  // namespace mindpipe
