#pragma once
#include <map>
#include <string>
#include <vector>

#include "app/run/run_arithmetic.h"
#include "io/manifest.h"

namespace mindpipe {

/// Settings by their keys, as they stand in a file.
using WrittenSettings = std::map<std::string, std::string>;

/// What a run's steps were computed with, from its first one on: a start may go on with another learning
/// rate, or with another class of kernels.
class RunHistory {
 public:
  /// Steps behind those of the era before.
  struct Era {
    std::int64_t end = 0;
    RunArithmetic arithmetic;
    WrittenSettings settings;
  };

  /// The history of a checkpoint; what it says of its last steps holds for later ones.
  explicit RunHistory(const Manifest& manifest);
  /// A start: goes on behind the steps of `from`, if any, with this.
  RunHistory(const Manifest* from, const RunArithmetic& arithmetic, const WrittenSettings& settings);

  const std::vector<Era>& eras() const { return eras_; }
  /// The era of a step, from 0.
  const Era& of(std::int64_t step) const;
  /// All but the last era, as a manifest has them.
  std::vector<EarlierSteps> earlier() const;

 private:
  std::vector<Era> eras_;
};

/// "optimizer.rate.peak is 0.1 here and 0.2 there": the first setting that differs of two runs of one name
/// and changes what they train; empty where none does. Files count by their contents, which the name has.
std::string other_course(const WrittenSettings& one, const WrittenSettings& other, const std::string& of_one,
                         const std::string& of_other);

/// The digest of all settings that change what is trained: 16 hexadecimal digits.
std::string name_of_course(const WrittenSettings& settings);

/// Samples that a run has left out, since it went back.
using LeftOutSamples = std::vector<SampleRange>;

/// What it means that two runs with these histories, which left out these samples, have other bits behind
/// their first `steps`. The words say whose: "in the first", "in the second".
std::string meaning_of_other_bits(const RunHistory& one, const RunHistory& other, std::int64_t steps,
                                  const std::string& of_one, const std::string& of_other,
                                  const LeftOutSamples& left_out_of_one = {},
                                  const LeftOutSamples& left_out_of_other = {});

}  // namespace mindpipe
