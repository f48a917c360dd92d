#pragma once
#include <optional>
#include <string>

#include "core/check.h"

namespace mindpipe {

/// Does what a rule, a file or a limit may refuse: the sentence, where one does. Mistakes of ours go on.
template <class Act>
std::optional<std::string> refusal_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    if (error.code == Exit::internal) throw;
    return error.what();
  }
  return std::nullopt;
}

}  // namespace mindpipe
