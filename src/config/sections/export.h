#pragma once
#include <cstdint>

#include "config/kinds.h"

namespace mindpipe {

/// How weights are written for others.
struct ExportConfig {
  std::int64_t part = 5'000'000'000;  ///< bytes of a file, at most
  Precision precision = Precision::f32;
  ExportNames names = ExportNames::transformers;
  bool operator==(const ExportConfig&) const = default;
};

}  // namespace mindpipe
