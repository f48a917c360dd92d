#include <cstddef>

// In place of libcudnn.so.9: a version of before GPUs could be described.
extern "C" std::size_t cudnnGetVersion() { return 90700; }
