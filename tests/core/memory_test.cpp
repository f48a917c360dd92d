#include "core/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace mindpipe {
namespace {

TEST(Memory, TheLedgerCountsByClassAndForgetsWhatIsReleased) {
  Memory memory(Memory::Kind::host);
  {
    const Arena values(memory, MemoryClass::values, 1000), more(memory, MemoryClass::values, 1),
        work(memory, MemoryClass::workspace, 300);
    EXPECT_EQ(memory.allocated(MemoryClass::values), 1024u + 256u);
    EXPECT_EQ(memory.allocated(), 1024u + 256u + 512u);
  }
  EXPECT_EQ(memory.allocated(), 0u);
}

TEST(Memory, ALargeBlockIsZeroAlsoWhereAnotherLayBefore) {
  Memory memory(Memory::Kind::host);
  EXPECT_FALSE(memory.gives_zeros(1000));
  const std::size_t bytes = (std::size_t{5} << 20) + 300;
  ASSERT_TRUE(memory.gives_zeros(bytes));
  for (int turn = 0; turn < 2; ++turn) {
    Arena arena(memory, MemoryClass::optimizer, bytes);
    const Tensor all = arena.take({static_cast<std::int64_t>(bytes)}, DType::u8);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.data) % (std::size_t{2} << 20), 0u);
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(all.as<std::uint8_t>()[i], 0) << "byte " << i << " of block " << turn;
    std::memset(all.data, 7, arena.size());
  }
}

TEST(Memory, BeyondTheLimitTheSentenceNamesTheClassTheLimitAndTheLedger) {
  Memory memory(Memory::Kind::host, 1 << 20);
  const Arena values(memory, MemoryClass::values, 900 << 10);
  try {
    Arena(memory, MemoryClass::activations, 200 << 10);
    FAIL() << "200 KiB more fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("activations needs 0.2 MiB more, but memory.device_limit is 1.0 MiB"));
  }
}

TEST(Memory, CountedMemoryTakesNothingAndKeepsAddressesApart) {
  Memory memory(Memory::Kind::counted);
  Arena one(memory, MemoryClass::values, std::size_t{1} << 44),
      two(memory, MemoryClass::values, std::size_t{1} << 44);
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

TEST(Memory, WhatWasEverUsedIsAddedUpByClassHoweverLargeTheArenasAre) {
  Memory memory(Memory::Kind::host);
  Arena kept(memory, MemoryClass::activations, 100'000), other(memory, MemoryClass::activations, 100'000),
      work(memory, MemoryClass::workspace, 100'000);
  EXPECT_EQ(memory.used(), 0u);
  kept.take({100}, DType::f32);
  kept.release(0);
  kept.take({10}, DType::f32);
  other.take({1}, DType::u8);
  EXPECT_EQ(memory.used(MemoryClass::activations), 512u + 256u)
      << "a mark does not sink when memory is given back";
  work.take({200}, DType::f32);
  EXPECT_EQ(memory.used(), 512u + 256u + 1024u);
  work = Arena();
  EXPECT_EQ(memory.used(MemoryClass::workspace), 0u);
}

TEST(Memory, ClosedMemoryGivesNothing) {
  Memory memory(Memory::Kind::host);
  {
    const Memory::Closed closed(memory);
    EXPECT_THROW(Arena(memory, MemoryClass::values, 1), Error);
  }
  EXPECT_NO_THROW(Arena(memory, MemoryClass::values, 1));
}

TEST(WorkArea, IsAsLargeAsReservedAndGrowsOnlyWhenAUseAsksForMore) {
  Memory memory(Memory::Kind::host);
  WorkArea area;
  area.reserve(memory, 1000);
  void* first = area.take(memory, 600);
  EXPECT_EQ(area.take(memory, 1000), first);
  EXPECT_EQ(memory.allocated(), 1024u);
  area.take(memory, 3000);
  EXPECT_EQ(memory.allocated(), 3072u);
  area.reserve(memory, 0);
  EXPECT_EQ(memory.allocated(), 0u);
  EXPECT_EQ(area.take(memory, 0), nullptr);
}

}  // namespace
}  // namespace mindpipe
