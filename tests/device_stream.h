#pragma once
#include <deque>
#include <functional>
#include <utility>

/// A stream of a device on the host: what CUDA's cudaStream_t points at there. Steps happen one after the
/// other, each when the step says so.
struct CUstream_st {
  std::deque<std::function<bool()>> steps;

  /// Puts in what is tried, turn by turn, until it has happened.
  void put(std::function<bool()> step) { steps.push_back(std::move(step)); }
  /// Tries the first step. Whether it has happened.
  bool turn() {
    if (steps.empty() || !steps.front()()) return false;
    steps.pop_front();
    return true;
  }
};
