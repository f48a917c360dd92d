#include "corpus/documents.h"

#include <limits>

#include "core/check.h"

namespace mindpipe {

void check_token(const std::string& file, std::int64_t document, std::int64_t position, std::int64_t token,
                 std::int64_t vocabulary) {
  const std::int64_t end =
      vocabulary > 0 ? vocabulary : std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  MP_REQUIRE(token >= 0 && token < end, Exit::bad_data,
             "{}: document {}, position {}: token {} (expected 0 to {}, the vocabulary has {}); set "
             "model.vocabulary to that of the tokenizer that wrote the file",
             file, document, position, token, end - 1, end);
}

}  // namespace mindpipe
