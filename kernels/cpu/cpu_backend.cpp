#include "cpu/cpu_backend.h"
#include "cpu/products.h"

#include <omp.h>

#include <cstring>

#include "make_backend.h"

namespace mindpipe {

CpuBackend::CpuBackend(Memory& memory, int threads, const std::string& instructions)
    : memory_(memory),
      threads_(threads > 0 ? threads : omp_get_max_threads()),
      isa_(choose_isa(instructions)),
      rotary_table_(memory),
      attention_scratch_(memory) {
  MP_REQUIRE(threads >= 0, Exit::bad_configuration,
             "device.threads is {} (0: as many as this process may use, else at least 1)", threads);
}

std::string CpuBackend::description() const {
  return fmt::format("cpu: {}, {} thread{}", name_of(isa_), threads_, threads_ == 1 ? "" : "s");
}

void CpuBackend::copy(const Tensor& from, const Tensor& to) {
  require(to, from.count(), from.dtype, "copy", "to");
  if (from.count() != 0) std::memcpy(to.data, from.data, from.bytes());
  progress();
}

void CpuBackend::upload(const void* host, const Tensor& to) {
  if (to.count() != 0) std::memcpy(to.data, host, to.bytes());
  progress();
}

void CpuBackend::download(const Tensor& from, void* host) {
  if (from.count() != 0) std::memcpy(host, from.data, from.bytes());
  progress();
}

void CpuBackend::reserve(const Workspace& workspace) {
  product_area_.reserve(memory_, workspace.products);
  attention_scratch_.reserve(workspace.attention);
  rotary_table_.reserve(workspace.rotary);
}

std::unique_ptr<Backend> make_cpu_backend(Memory& memory, int threads, const std::string& instructions) {
  return std::make_unique<CpuBackend>(memory, threads, instructions);
}

}  // namespace mindpipe
