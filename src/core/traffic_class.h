#pragma once
#include "core/kinds.h"

namespace mindpipe {

/// Class of traffic between ranks by what it is for, the highest first: a lower class begins no new part
/// while a higher one waits. `files` is what ranks bring together to be written: weights, the trace.
#define MINDPIPE_TRAFFIC_CLASSES(kind)                                                            \
  kind(scalars, "scalars") kind(tensor, "tensor") kind(pipeline, "pipeline") kind(moves, "moves") \
      kind(values, "values") kind(gradients, "gradients") kind(files, "files")
MINDPIPE_KINDS(TrafficClass, NamedRow, MINDPIPE_TRAFFIC_CLASSES)
inline constexpr auto traffic_classes = all_kinds<TrafficClass>();

}  // namespace mindpipe
