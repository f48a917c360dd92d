// The device code, compiled for the host.
#include "cuda/device/classifier.cu"
#include "cuda/device/column_sums.cu"
#include "cuda/device/elementwise.cu"
#include "cuda/device/embedding.cu"
#include "cuda/device/norm.cu"
#include "cuda/device/rotary.cu"
#include "cuda/device/sort.cu"
#include "cuda/device/update.cu"
