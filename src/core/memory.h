#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace mindpipe {

/// Class of use of memory; the ledger has a line for each. `copy`: of the state, which is written from there.
#define MINDPIPE_MEMORY_CLASSES(kind)                                                          \
  kind(values, "values") kind(gradients, "gradients") kind(optimizer, "optimizer")             \
      kind(activations, "activations") kind(boundary, "boundary") kind(workspace, "workspace") \
          kind(copy, "state copy")
MINDPIPE_KINDS(MemoryClass, NamedRow, MINDPIPE_MEMORY_CLASSES)
inline constexpr auto memory_classes = all_kinds<MemoryClass>();

/// Alignment, in bytes, of every tensor and block.
inline constexpr std::size_t alignment = 256;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
inline std::size_t bytes_for(const Shape& shape, DType dtype) {
  return aligned(static_cast<std::size_t>(shape.count()) * bytes_of(dtype));
}

/// Source of blocks of memory: the host's memory, the memory of the GPU that this thread has chosen
/// (`device`), host memory that the GPU can reach at full speed (`pinned`), or nowhere (`counted`: sizes are
/// added up and addresses are never followed). Keeps the ledger by class and refuses to go beyond the limit.
class Memory {
 public:
  enum class Kind { host, device, pinned, counted };
  explicit Memory(Kind kind, std::size_t limit = 0) : kind_(kind), limit_(limit) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* allocate(std::size_t bytes, MemoryClass use);
  void release(void* address, std::size_t bytes, MemoryClass use) noexcept;
  /// Whether a block of `bytes` is zero when it is new, with no page of it touched yet.
  bool gives_zeros(std::size_t bytes) const;
  std::size_t allocated(MemoryClass use) const { return allocated_[static_cast<int>(use)]; }
  std::size_t allocated() const;
  std::size_t limit() const { return limit_; }
  Kind kind() const { return kind_; }
  /// Bytes that arenas have ever held: the high-water mark of each, added up (they lend each other nothing).
  std::size_t used(MemoryClass use) const { return used_[static_cast<int>(use)]; }
  std::size_t used() const;
  /// The ledger, a line for each class, that is printed before step 0 and when memory runs out.
  std::string ledger() const;

  /// While one of these lives nothing may be allocated: a step works in what was taken before it.
  class Closed {
   public:
    explicit Closed(Memory& memory) : memory_(memory) { ++memory_.closed_; }
    Closed(const Closed&) = delete;
    ~Closed() { --memory_.closed_; }

   private:
    Memory& memory_;
  };

 private:
  friend class Arena;
  void* obtain(std::size_t bytes, MemoryClass use);

  Kind kind_;
  std::size_t limit_;
  std::array<std::size_t, memory_classes.size()> allocated_{}, used_{};
  int closed_ = 0;
  std::uintptr_t next_counted_ = std::uintptr_t{1} << 46;
};

/// `bytes` by class, one line each, and their sum.
std::string ledger_of(const std::array<std::int64_t, memory_classes.size()>& bytes);

/// Owns one block and hands out aligned views of it, last in, first out.
class Arena {
 public:
  Arena() = default;
  Arena(Memory& memory, MemoryClass use, std::size_t bytes);
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  Tensor take(const Shape& shape, DType dtype);
  std::size_t mark() const { return used_; }
  void release(std::size_t mark) { used_ = mark; }
  void forget();  ///< empties the arena; peak() begins anew
  std::size_t size() const { return size_; }
  std::size_t peak() const { return peak_; }  ///< the most that was ever in use
  bool holds(const void* address) const;
  std::size_t offset_of(const void* address) const;
  void* address_of(std::size_t offset) const { return base_ + offset; }

 private:
  Memory* memory_ = nullptr;
  MemoryClass use_ = MemoryClass::workspace;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0, used_ = 0, peak_ = 0;
};

/// Working memory for one use at a time: as large as was reserved, and larger only once a use asks for more.
class WorkArea {
 public:
  /// Makes the area `bytes` large, no more and no less; its contents are lost.
  void reserve(Memory& memory, std::size_t bytes);
  /// Hands out `bytes` of the area; what the use before left is lost.
  void* take(Memory& memory, std::size_t bytes);
  std::size_t size() const { return arena_.size(); }

 private:
  Arena arena_;
};

}  // namespace mindpipe
