#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"

namespace mindpipe {

/// All that a bit of a training depends on, part by part: the class of the kernels, compiler and flags, the
/// functions of real numbers, what the code fixes (rounding points, random streams, the order of samples),
/// inputs by their contents, and the settings whose role is arithmetic. Layout, commit and machine are no
/// part.
class RunArithmetic {
 public:
  using Part = std::pair<std::string, std::string>;  ///< "train.batch", "32"

  /// `kernels`: a backend's description. `inputs`: those of inputs_of, which one rank reads for all.
  RunArithmetic(const Config& config, const std::string& kernels, const std::string& inputs);
  /// What a text() says; of a checkpoint from before there were names the kernels alone.
  explicit RunArithmetic(const std::string& text);

  const std::vector<Part>& parts() const { return parts_; }
  /// Whether all parts are known, so that there is a name.
  bool has_name() const { return parts_.size() > 1; }
  /// The digest of all parts: 16 hexadecimal digits.
  std::string name() const;
  /// A line for each part, "train.batch: 32".
  std::string text() const;

 private:
  std::vector<Part> parts_;
};

/// The parts of a configuration that lie in files, a line each: by contents, so a file may move.
std::string inputs_of(const Config& config);

/// "train.batch is 32 here and 64 there": the first part that differs; empty where none does. Of a checkpoint
/// without a name the kernels alone are compared.
std::string first_difference(const RunArithmetic& here, const RunArithmetic& there, const std::string& where);

/// "optimizer.rate.peak is 0.1 here and 0.2 there": the first setting that differs of two runs of one name
/// and changes what they train; empty where none does. Files count by their contents, which the name has.
std::string other_course(const std::map<std::string, std::string>& one,
                         const std::map<std::string, std::string>& other, const std::string& of_one,
                         const std::string& of_other);

/// What it means that two runs of these names, with these settings of the course, have other bits.
std::string meaning_of_other_bits(const RunArithmetic& one, const RunArithmetic& other,
                                  const std::string& other_course);

}  // namespace mindpipe
