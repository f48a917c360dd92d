#include "cpu/cpu_backend.h"
#include "cpu/products.h"

#include <omp.h>

#include <cstring>

#include "core/clock.h"
#include "operands.h"

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

Memory& CpuBackend::memory() { return memory_; }

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

// Every operation is done when it returns, so queues and events have nothing to remember.
void CpuBackend::use_queue(int) {}
std::uint64_t CpuBackend::record(int) { return 0; }
void CpuBackend::wait(int, std::uint64_t) {}
bool CpuBackend::finished(std::uint64_t) { return true; }
void CpuBackend::synchronize() { progress(); }
std::uint64_t CpuBackend::mark(int) { return static_cast<std::uint64_t>(now_ns()); }
std::int64_t CpuBackend::nanoseconds_between(std::uint64_t first, std::uint64_t then) {
  return static_cast<std::int64_t>(then - first);
}
void CpuBackend::keep_marks(std::size_t) {}

void CpuBackend::reserve(const Workspace& workspace) {
  product_area_.reserve(memory_, workspace.products);
  attention_scratch_.reserve(workspace.attention);
  rotary_table_.reserve(workspace.rotary);
}

std::unique_ptr<Backend> make_cpu_backend(Memory& memory, int threads, const std::string& instructions) {
  return std::make_unique<CpuBackend>(memory, threads, instructions);
}

}  // namespace mindpipe
