// The device code that works in shared memory, compiled for the host.
#include "cuda/device/classifier.cu"
#include "cuda/device/column_sums.cu"
#include "cuda/device/norm.cu"
#include "cuda/device/norm_backward.cu"
#include "cuda/device/softmax.cu"
#include "cuda/device/sort.cu"
#include "cuda/device/update.cu"
