#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "corpus/byte_stream.h"
#include "corpus/import_encoder.h"

namespace mindpipe {

/// Cuts files into documents, in order: texts whole or in pieces that are cut at lines, others line by line.
class ImportReader {
 public:
  /// `cuts_texts`: tokens of a text do not reach over the begin of a line, so that a long one can be read in
  /// pieces.
  ImportReader(const std::vector<ImportFile>& files, bool cuts_texts)
      : files_(files), cuts_texts_(cuts_texts) {}

  /// The next documents, of about a mebibyte together; none at the end.
  std::vector<RawDocument> next();

 private:
  bool read(std::vector<RawDocument>& documents);
  void read_text(std::vector<RawDocument>& documents);
  void read_lines(std::vector<RawDocument>& documents);
  void close();

  const std::vector<ImportFile>& files_;
  bool cuts_texts_;
  std::size_t file_ = 0;
  std::unique_ptr<ByteStream> bytes_;  ///< text that is being read
  std::optional<LineReader> lines_;    ///< other file that is being read
  std::string rest_;                   ///< text that was read and given to nobody
  bool begins_ = true;                 ///< whether the next piece is a text's first
};

}  // namespace mindpipe
