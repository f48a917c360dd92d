#include "corpus/documents.h"

#include <limits>

#include "core/check.h"

namespace mindpipe {

DocumentLengths lengths_of(const Documents& documents) {
  DocumentLengths lengths;
  const std::int64_t count = documents.count();
  for (std::int64_t d = 0; d < count; ++d) {
    const std::int64_t length = documents.length(d);
    lengths.tokens += length;
    // A step of a 64-bit hash: an odd multiplier (of the golden ratio) and a fold of the high bits.
    const std::uint64_t mixed = (lengths.digest ^ static_cast<std::uint64_t>(length)) * 0x9e3779b97f4a7c15u;
    lengths.digest = mixed ^ (mixed >> 29);
  }
  return lengths;
}

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
