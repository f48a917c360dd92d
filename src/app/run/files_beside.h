#pragma once
#include <deque>
#include <istream>
#include <string>

#include "config/config.h"
#include "io/file.h"

namespace mindpipe {

/// What stands beside weights so that transformers opens a directory: config.json and the tokenizer's files.
/// A machine that stops meanwhile leaves no config.json beside weights or a tokenizer that it does not
/// describe: it goes away before they change, and comes last.
class FilesBeside {
 public:
  /// Writes what differs from the files that are there, under names for the time. Says why there is no
  /// config.json, or no tokenizer.
  FilesBeside(const Config& config, const std::string& directory);

  /// Takes away a config.json that the new weights would not have. To be called before they appear.
  void make_way() const;
  /// Gives the files their names. To be called when the weights are there.
  void complete();

 private:
  void copy(const std::string& from, const std::string& name);
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, std::istream& bytes);
  void write_tokenizer(const Config& config);

  std::string directory_;
  bool changes_ = false;  ///< whether any of the files is another than before
  std::deque<NewFile> made_;
};

}  // namespace mindpipe
