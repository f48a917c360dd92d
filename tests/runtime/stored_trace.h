#pragma once
#include "runtime/trace_form.h"

namespace mindpipe {

/// Writes a trace from one process, which has the times of all ranks.
inline void store_step_trace(const StepTrace& trace, const std::string& path) {
  std::vector<TraceTensor> tensors = trace_form::program_tensors(trace);
  for (int rank = 0; rank < static_cast<int>(trace.ranks.size()); ++rank)
    for (TraceTensor& tensor : trace_form::rank_tensors(trace.ranks[rank], rank))
      tensors.push_back(std::move(tensor));
  std::map<std::string, std::uint32_t> crcs;
  std::vector<TensorToStore> stored;
  for (const TraceTensor& tensor : tensors) {
    crcs[tensor.name] = tensor.crc();
    stored.push_back(tensor.stored());
  }
  write_safetensors(path, trace_form::metadata(trace, crcs), stored);
}

}  // namespace mindpipe
