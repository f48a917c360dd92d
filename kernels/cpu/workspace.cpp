#include "cpu/workspace.h"

#include "cpu/attention.h"
#include "cpu/rotary_table.h"

namespace mindpipe {

void CpuWorkspace::attention(const AttentionQuestion& question, const Heads& q, const Heads& k,
                             const Heads& v, const Tensor& log_sum, const Tensor& out) {
  largest_.include(
      {.attention = attention_scratch_bytes(isa_, threads_, question, q, k, v, log_sum, out, false)});
}

void CpuWorkspace::attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                      const Heads& v, const Tensor& log_sum, const Tensor& out, const Tensor&,
                                      const Heads&, const Heads&, const Heads&) {
  largest_.include(
      {.attention = attention_scratch_bytes(isa_, threads_, question, q, k, v, log_sum, out, true)});
}

void CpuWorkspace::rotary(const Heads& heads) {
  largest_.include({.rotary = RotaryTable::bytes_for(heads.data.shape[3], heads.data.shape[1])});
}

}  // namespace mindpipe
