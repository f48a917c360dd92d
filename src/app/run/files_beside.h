#pragma once
#include <deque>
#include <istream>
#include <map>
#include <set>
#include <string>

#include "io/file.h"

namespace mindpipe {

struct Config;

/// Files that say what weights are, by their names in the directory.
using Descriptions = std::map<std::string, std::string>;

/// What stands beside weights so that transformers opens a directory: config.json and the tokenizer's files,
/// and what else describes the weights. A machine that stops meanwhile leaves no description and no tokenizer
/// beside weights that are not theirs: what changes goes away before the weights do, and comes after them.
class FilesBeside {
 public:
  /// Writes what differs from the files that are there, under names for the time. Says why there is no
  /// config.json, or no tokenizer.
  FilesBeside(const Config& config, const std::string& directory, const Descriptions& more = {});

  /// Takes away what the new weights would not have. To be called before they appear.
  void make_way() const;
  /// Gives the files their names. To be called when the weights are there.
  void complete();

 private:
  void copy(const std::string& from, const std::string& name);
  void write(const std::string& name, std::istream& bytes);
  void write_if_other(const std::string& name, std::istream& bytes);
  void write_tokenizer(const Config& config);

  std::string directory_;
  bool changes_ = false;                ///< whether any of the files is another than before
  bool is_other_tokenizer_ = false;     ///< than the one whose files are there
  std::set<std::string> of_tokenizer_;  ///< files of the tokenizer, whether they change or not
  std::set<std::string> going_;         ///< files that go away before others change
  std::deque<NewFile> made_;
};

}  // namespace mindpipe
