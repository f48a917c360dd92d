#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "corpus/byte_stream.h"
#include "corpus/import_encoder.h"
#include "corpus/text_cuts.h"

namespace mindpipe {

/// Cuts files into documents, in order: texts whole or in pieces, others line by line.
class ImportReader {
 public:
  ImportReader(const std::vector<ImportFile>& files, const TextCuts& cuts) : files_(files), cuts_(cuts) {}

  /// The next documents, of about a piece of a text together; none at the end.
  std::vector<RawDocument> next();

 private:
  bool read(std::vector<RawDocument>& documents);
  void read_text(std::vector<RawDocument>& documents);
  void read_lines(std::vector<RawDocument>& documents);
  void close();

  const std::vector<ImportFile>& files_;
  const TextCuts& cuts_;
  std::size_t file_ = 0;
  std::unique_ptr<ByteStream> bytes_;  ///< text that is being read
  std::optional<LineReader> lines_;    ///< other file that is being read
  std::string rest_;                   ///< text that was read and given to nobody
  bool begins_ = true;                 ///< whether the next piece is a text's first
};

}  // namespace mindpipe
