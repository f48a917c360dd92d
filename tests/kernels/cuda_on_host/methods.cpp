// What checks operands and starts kernels, and the memory of the GPU, compiled for the runtime of this
// folder.
#ifndef MINDPIPE_CUDA
#define MINDPIPE_CUDA
#endif
#include "core/memory.cpp"
#include "cuda/classifier.cpp"
#include "cuda/embedding.cpp"
#include "cuda/error.cpp"
#include "cuda/gpu_operations.cpp"
#include "cuda/norm.cpp"
#include "cuda/queues.cpp"
#include "cuda/staging.cpp"
#include "cuda/time_marks.cpp"
