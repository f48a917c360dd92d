#pragma once
#include <array>

namespace mindpipe {

/// Class of traffic between ranks by what it is for, the highest first: a lower class begins no new part
/// while a higher one waits. `files` is what ranks bring together to be written: weights, the trace.
enum class TrafficClass { scalars, tensor, pipeline, moves, values, gradients, files };
inline constexpr std::array traffic_classes{
    TrafficClass::scalars, TrafficClass::tensor,    TrafficClass::pipeline, TrafficClass::moves,
    TrafficClass::values,  TrafficClass::gradients, TrafficClass::files};

/// The word for a traffic class in tables and traces.
constexpr const char* name_of(TrafficClass kind) {
  switch (kind) {
    case TrafficClass::scalars:
      return "scalars";
    case TrafficClass::tensor:
      return "tensor";
    case TrafficClass::pipeline:
      return "pipeline";
    case TrafficClass::moves:
      return "moves";
    case TrafficClass::values:
      return "values";
    case TrafficClass::gradients:
      return "gradients";
    case TrafficClass::files:
      return "files";
  }
  return "?";
}

}  // namespace mindpipe
