#pragma once
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "kernels/gpu_on_host.h"
#include "kernels/operand.h"

/// Kernels at shapes whose indices do not fit into 32 bits: their operands lie in address space that has
/// memory where it is touched only, and the first and the last blocks run.
namespace mindpipe::testing {

/// Address space for the operands of one operation, which begin as zeros.
class Space {
 public:
  Space()
      : memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0)) {}
  ~Space() {
    if (there()) munmap(memory_, bytes_);
  }
  Space(const Space&) = delete;
  bool there() const { return memory_ != MAP_FAILED; }

  /// An operand that begins where a page does, with as much free space behind it.
  Tensor take(const Shape& shape, DType dtype) {
    Tensor made{nullptr, shape, dtype};
    const std::size_t room = (made.bytes() + page - 1) / page * page;
    made.data = static_cast<std::byte*>(memory_) + used_;
    used_ += 2 * room + page;
    MP_CHECK(used_ <= bytes_, "the operands take more than {} bytes", bytes_);
    operands_.push_back({made.data, made.bytes()});
    return made;
  }
  /// An operand of which some is not touched: it has no row, or no column, for each element of the result.
  Tensor take_part(const Shape& shape, DType dtype) {
    const Tensor made = take(shape, dtype);
    parts_.push_back(operands_.size() - 1);
    return made;
  }
  std::vector<on_host::Extent>& operands() { return operands_; }
  /// The operands that were not touched from their first byte to their last.
  std::vector<std::size_t> left_out() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (std::find(parts_.begin(), parts_.end(), i) == parts_.end() &&
          (operands_[i].low != 0 || operands_[i].high != operands_[i].bytes))
        all.push_back(i);
    return all;
  }

 private:
  static constexpr std::size_t page = 4096, bytes_ = std::size_t{1} << 42;
  void* memory_;
  std::size_t used_ = 0;
  std::vector<on_host::Extent> operands_;
  std::vector<std::size_t> parts_;
};

/// Runs operations on operands that they take from a space of their own.
class Addresses : public ::testing::Test {
 protected:
  /// The kernels that work(space) starts touch their operands only, and the blocks at both ends of their
  /// grids touch these from end to end. `ends`: how many blocks run at each end, 0 for all.
  template <class Work>
  void expect_reached(const char* name, const Work& work, unsigned ends = 2) {
    SCOPED_TRACE(name);
    Space space;
    if (!space.there()) GTEST_SKIP() << "this system reserves no address space beyond its memory";
    const on_host::Complaints complaints;
    const on_host::Within within(space.operands());
    on_host::run_ends(ends);
    work(space);
    gpu.synchronize();
    on_host::run_ends(0);
    EXPECT_THAT(complaints.all, ::testing::IsEmpty());
#ifndef MINDPIPE_UNWATCHED
    EXPECT_THAT(space.left_out(), ::testing::IsEmpty()) << "operands that are not touched from end to end";
#endif
  }

  Cpu cpu{1};
  Memory memory{Memory::Kind::device};
  GpuOnHost gpu{memory, *cpu.backend};
};

struct Model {
  const char* name;
  std::int64_t samples, rows, width, heads, key_heads, head_width, hidden, words, parameters;
  Shape x(std::int64_t cols) const { return {samples, rows, cols}; }
  std::int64_t all_rows() const { return samples * rows; }
};
/// More samples than a GPU takes at once: logits have more elements than 31 and 32 bits count.
inline const Model models[] = {{"GPT-2 1.5B", 64, 1024, 1600, 25, 25, 64, 6400, 50304, 1'557'611'200},
                               {"Llama 8B", 5, 8192, 4096, 32, 8, 128, 14336, 128256, 8'030'261'248}};

inline constexpr DType bf16 = DType::bf16, f32 = DType::f32, i32 = DType::i32;

/// A last token that is the last of the vocabulary.
inline Tensor tokens_of(Space& space, std::int64_t count, std::int64_t words) {
  const Tensor tokens = space.take({count}, i32);
  tokens.as<std::int32_t>()[count - 1] = static_cast<std::int32_t>(words - 1);
  return tokens;
}

}  // namespace mindpipe::testing
