#include "core/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

TEST(Memory, TheLedgerCountsByClassAndForgetsWhatIsReleased) {
  Memory memory(Memory::Kind::host);
  {
    const Arena values(memory, MemoryClass::values, 1000), more(memory, MemoryClass::values, 1), work(memory, MemoryClass::workspace, 300);
    EXPECT_EQ(memory.allocated(MemoryClass::values), 1024u + 256u);
    EXPECT_EQ(memory.allocated(), 1024u + 256u + 512u);
  }
  EXPECT_EQ(memory.allocated(), 0u);
}

TEST(Memory, BeyondTheLimitTheSentenceNamesTheClassTheLimitAndTheLedger) {
  Memory memory(Memory::Kind::host, 1 << 20);
  const Arena values(memory, MemoryClass::values, 900 << 10);
  try {
    Arena(memory, MemoryClass::activations, 200 << 10);
    FAIL() << "200 KiB more fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("activations needs 0.2 MiB more, but memory.device_limit is 1.0 MiB"));
  }
}

TEST(Memory, CountedMemoryTakesNothingAndKeepsAddressesApart) {
  Memory memory(Memory::Kind::counted);
  Arena one(memory, MemoryClass::values, std::size_t{1} << 44), two(memory, MemoryClass::values, std::size_t{1} << 44);
  EXPECT_NE(one.take({4}, DType::f32).data, two.take({4}, DType::f32).data);
  EXPECT_EQ(memory.allocated(), std::size_t{2} << 44);
}

TEST(Memory, AnArenaGivesAlignedViewsLastInFirstOutAndRemembersItsPeak) {
  Memory memory(Memory::Kind::host);
  Arena arena(memory, MemoryClass::workspace, 2048);
  arena.take({3}, DType::f32);
  const std::size_t mark = arena.mark();
  const Tensor second = arena.take({100}, DType::f32);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data) % alignment, 0u);
  arena.release(mark);
  EXPECT_EQ(arena.take({1}, DType::bf16).data, second.data);
  EXPECT_EQ(arena.peak(), 256u + 512u);
  EXPECT_THROW(arena.take({10'000}, DType::f32), Error);
}

}  // namespace
}  // namespace mindpipe
