#pragma once
#include <string>
#include <string_view>

namespace mindpipe {

/// A pattern that the library tokenizers reads by Oniguruma, written for PCRE2 so that it matches alike.
/// Syntax that has no exact counterpart is refused by its name.
std::string oniguruma_for_pcre2(std::string_view pattern);

}  // namespace mindpipe
