#include "core/memory.h"

#ifdef MINDPIPE_CUDA
#include <cuda_runtime_api.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace mindpipe {
namespace {

constexpr std::size_t page = 4096, huge = std::size_t{2} << 20;
bool is_large(std::size_t bytes) { return bytes >= 2 * huge; }

/// Takes a large block as pages of the system, zero until they are written, and as huge pages where there are
/// such: fewer faults at the start, fewer misses in every product.
void* allocate_host(std::size_t bytes) {
  if (!is_large(bytes)) return std::aligned_alloc(alignment, bytes);
  const std::size_t pages = (bytes + page - 1) / page * page;
  void* mapped = mmap(nullptr, pages + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (huge - reinterpret_cast<std::uintptr_t>(begin) % huge) % huge;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + pages, huge - before);
  // Whole ones only: the last, if it were half used, would be resident beyond what the ledger says.
  madvise(begin + before, bytes / huge * huge, MADV_HUGEPAGE);
  return begin + before;
}
void release_host(void* address, std::size_t bytes) {
  if (is_large(bytes)) munmap(address, bytes);
  else std::free(address);
}

#ifdef MINDPIPE_CUDA
void* allocate_cuda(Memory::Kind kind, std::size_t bytes) {
  void* address = nullptr;
  const cudaError_t answer = kind == Memory::Kind::device
                                 ? cudaMalloc(&address, bytes)
                                 : cudaHostAlloc(&address, bytes, cudaHostAllocPortable);
  if (answer == cudaSuccess) return address;
  cudaGetLastError();  // answered here; it is not to be found by the next call
  MP_REQUIRE(answer == cudaErrorMemoryAllocation, Exit::bad_configuration,
             "cuda: no memory of the GPU or for it ({}); look with nvidia-smi, or set device.kind=cpu",
             cudaGetErrorString(answer));
  return nullptr;
}
void release_cuda(Memory::Kind kind, void* address) {
  kind == Memory::Kind::device ? cudaFree(address) : cudaFreeHost(address);
}
#else
void* allocate_cuda(Memory::Kind, std::size_t) {
  fail(Exit::bad_configuration, "this build has no CUDA, so it has no memory of a GPU or for it");
}
void release_cuda(Memory::Kind, void*) {}
#endif

}  // namespace

std::size_t Memory::allocated() const {
  return std::accumulate(allocated_.begin(), allocated_.end(), std::size_t{0});
}
std::size_t Memory::used() const { return std::accumulate(used_.begin(), used_.end(), std::size_t{0}); }

std::string ledger_of(const std::array<std::int64_t, memory_classes.size()>& bytes) {
  std::string text;
  const auto line = [&](std::string_view name, std::int64_t n) {
    text += fmt::format("  {:<12} {:>12.1f} MiB\n", name, static_cast<double>(n) / 1048576.0);
  };
  for (MemoryClass kind : memory_classes) line(name_of(kind), bytes[static_cast<int>(kind)]);
  line("total", std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  return text;
}

std::string Memory::ledger() const {
  std::array<std::int64_t, memory_classes.size()> bytes{};
  std::copy(allocated_.begin(), allocated_.end(), bytes.begin());
  return ledger_of(bytes);
}

void* Memory::allocate(std::size_t bytes, MemoryClass use) {
  bytes = aligned(bytes);
  if (bytes == 0) return nullptr;
  MP_CHECK(closed_ == 0, "{} of {} bytes asked for in the middle of a step, where nothing is allocated",
           name_of(use), bytes);
  MP_REQUIRE(limit_ == 0 || allocated() + bytes <= limit_, Exit::out_of_memory,
             "memory: {} needs {:.1f} MiB more, but memory.device_limit is {:.1f} MiB; held so far:\n{}",
             name_of(use), bytes / 1048576.0, limit_ / 1048576.0, ledger());
  void* address = obtain(bytes, use);
  allocated_[static_cast<int>(use)] += bytes;
  return address;
}

void* Memory::obtain(std::size_t bytes, MemoryClass use) {
  if (kind_ == Kind::counted)
    return reinterpret_cast<void*>(std::exchange(next_counted_, next_counted_ + bytes));
  void* address = kind_ == Kind::host ? allocate_host(bytes) : allocate_cuda(kind_, bytes);
  MP_REQUIRE(address != nullptr, Exit::out_of_memory,
             "memory: this {} would not give {:.1f} MiB for {}; held so far:\n{}",
             kind_ == Kind::device ? "GPU" : "machine", bytes / 1048576.0, name_of(use), ledger());
  return address;
}

bool Memory::gives_zeros(std::size_t bytes) const { return kind_ == Kind::host && is_large(aligned(bytes)); }

void Memory::release(void* address, std::size_t bytes, MemoryClass use) noexcept {
  if (address == nullptr) return;
  bytes = aligned(bytes);
  allocated_[static_cast<int>(use)] -= bytes;
  if (kind_ == Kind::host) release_host(address, bytes);
  else if (kind_ != Kind::counted) release_cuda(kind_, address);
}

Arena::Arena(Memory& memory, MemoryClass use, std::size_t bytes)
    : memory_(&memory),
      use_(use),
      base_(static_cast<std::byte*>(memory.allocate(bytes, use))),
      size_(aligned(bytes)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(use_, other.use_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(used_, other.used_);
  std::swap(peak_, other.peak_);
  return *this;
}

Arena::~Arena() {
  if (memory_ == nullptr) return;
  memory_->used_[static_cast<int>(use_)] -= peak_;
  memory_->release(base_, size_, use_);
}

Tensor Arena::take(const Shape& shape, DType dtype) {
  const std::size_t bytes = bytes_for(shape, dtype);
  MP_CHECK(used_ + bytes <= size_, "the arena for {} is full: {} + {} of {} bytes", name_of(use_), used_,
           bytes, size_);
  Tensor t{base_ + used_, shape, dtype};
  used_ += bytes;
  if (used_ > peak_) {
    memory_->used_[static_cast<int>(use_)] += used_ - peak_;
    peak_ = used_;
  }
  return t;
}

void Arena::forget() {
  used_ = 0;
  if (memory_ != nullptr) memory_->used_[static_cast<int>(use_)] -= peak_;
  peak_ = 0;
}

bool Arena::holds(const void* address) const {
  const auto* p = static_cast<const std::byte*>(address);
  return base_ != nullptr && p >= base_ && p < base_ + size_;
}

std::size_t Arena::offset_of(const void* address) const {
  MP_CHECK(holds(address), "the arena for {} does not hold this tensor", name_of(use_));
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
}

void WorkArea::reserve(Memory& memory, std::size_t bytes) {
  arena_ = Arena();
  arena_ = Arena(memory, MemoryClass::workspace, bytes);
}

void* WorkArea::take(Memory& memory, std::size_t bytes) {
  if (bytes > arena_.size()) reserve(memory, bytes);
  arena_.release(0);
  return bytes == 0 ? nullptr : arena_.take({static_cast<std::int64_t>(bytes)}, DType::u8).data;
}

}  // namespace mindpipe
