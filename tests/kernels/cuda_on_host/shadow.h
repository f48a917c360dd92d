#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The shared memory of a block, with a shadow: who wrote and read each byte, between which barriers. Device
/// code is compiled with g++'s -fsanitize=thread and linked without its library: what it calls before each
/// access is in shadow.cpp.
namespace on_host {

/// Forgets the block before, fills shared memory with NaN, and gives the block this much beside what its
/// kernel declares.
void begin_block(std::size_t dynamic_bytes);
void end_block();
/// All threads of the block, or all lanes of a warp, have come to a barrier: what they did is ordered before
/// what they do.
void pass_barrier();
void pass_barrier_of_warp(unsigned warp);
/// The running thread is about to read these bytes.
void note_read(const void* address, std::size_t bytes);

/// What a kernel did that a GPU would not bear. The program ends with it, unless a test collects.
void complain(const std::string& what);

/// The bytes that dynamic shared memory may have at most.
constexpr std::size_t most_dynamic_bytes = 227 << 10;

}  // namespace on_host
