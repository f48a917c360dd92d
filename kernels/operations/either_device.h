#pragma once

/// Stands before functions of plain arithmetic that hosts and GPUs call.
#ifdef __CUDACC__
#define MINDPIPE_EITHER_DEVICE __host__ __device__
#else
#define MINDPIPE_EITHER_DEVICE
#endif
