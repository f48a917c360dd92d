#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

/// Functions that a GPU's kernels call; a compiler of the host takes them for its own.
#ifdef __CUDACC__
#define MINDPIPE_DEVICE __device__ __forceinline__
#define MINDPIPE_UNROLL _Pragma("unroll")
#define MINDPIPE_UNROLL_4 _Pragma("unroll 4")
#else
#define MINDPIPE_DEVICE inline
#define MINDPIPE_UNROLL
#define MINDPIPE_UNROLL_4
#endif
