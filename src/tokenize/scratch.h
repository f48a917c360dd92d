#pragma once
#include <deque>
#include <string>
#include <string_view>

#include "tokenize/pattern.h"

namespace mindpipe {

/// A part of a text on the way to the model.
struct TextPiece {
  std::string_view text;
  bool begins_document = false;  ///< nothing of the document stands before it
};

/// Who takes pieces, one after the other.
class PieceSink {
 public:
  virtual void take(const TextPiece& piece) = 0;

 protected:
  ~PieceSink() = default;
};

}  // namespace mindpipe
