#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mindpipe {

struct Config;

/// All that a bit of a training depends on, part by part: the class of the kernels, compiler and flags, the
/// functions of real numbers, what the code fixes (rounding points, random streams, the order of samples),
/// inputs by their contents, and the settings whose role is arithmetic. Layout, commit and machine are no
/// part.
class RunArithmetic {
 public:
  using Part = std::pair<std::string, std::string>;             ///< "train.batch", "32"
  using Counts = std::function<bool(const std::string& part)>;  ///< whether a part is looked at

  /// `kernels`: a backend's description. `inputs`: those of inputs_of.
  RunArithmetic(const Config& config, const std::string& kernels, const std::string& inputs);
  /// What a text() says; of a checkpoint from before there were names the kernels alone.
  explicit RunArithmetic(const std::string& text);

  const std::vector<Part>& parts() const { return parts_; }
  /// Whether there is a part of this name.
  bool has(const std::string& part) const;
  /// Whether all parts are known, so that there is a name.
  bool has_name() const { return parts_.size() > 1; }
  /// The digest of all parts: 16 hexadecimal digits.
  std::string name() const;
  /// A line for each part, "train.batch: 32".
  std::string text() const;

 private:
  std::vector<Part> parts_;
};

/// "train.batch is 32 here and 64 there": the first part that differs, of all or of those that `counts`
/// takes; empty where none does. Of a checkpoint without a name the kernels alone are compared.
std::string first_difference(const RunArithmetic& one, const RunArithmetic& other, const std::string& of_one,
                             const std::string& of_other, const RunArithmetic::Counts& counts = {});

}  // namespace mindpipe
