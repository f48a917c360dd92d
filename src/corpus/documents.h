#pragma once
#include <cstdint>
#include <string>

namespace mindpipe {

/// Documents of tokens that can be read anywhere: a token file, a text.
class Documents {
 public:
  virtual ~Documents() = default;
  virtual std::int64_t count() const = 0;
  /// Number of tokens of one document; may be 0.
  virtual std::int64_t length(std::int64_t document) const = 0;
  /// Copies tokens [first, first + tokens) of one document.
  virtual void read(std::int64_t document, std::int64_t first, std::int64_t tokens,
                    std::int32_t* out) const = 0;
  /// Name of the file, for messages and the log.
  virtual std::string name() const = 0;
};

/// The lengths of all documents in short: their sum, and a digest by which two lists of lengths are told
/// apart.
struct DocumentLengths {
  std::int64_t tokens = 0;
  std::uint64_t digest = 0;
};
DocumentLengths lengths_of(const Documents& documents);

/// Refuses a token outside [0, vocabulary); a vocabulary of 0 lets every token pass that fits 32 bits.
void check_token(const std::string& file, std::int64_t document, std::int64_t position, std::int64_t token,
                 std::int64_t vocabulary);

}  // namespace mindpipe
