#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/main_verb.h"
#include "core/check.h"

namespace mindpipe {

void print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  MP_REQUIRE(whole, Exit::io_error, "the output cannot be written ({})", std::strerror(errno));
}

}  // namespace mindpipe
