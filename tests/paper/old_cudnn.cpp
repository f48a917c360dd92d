#include <cstddef>

#include "serves.h"

// In place of libcudnn.so.9: a version of before GPUs could be described, for programs that plan on paper.
extern "C" std::size_t cudnnGetVersion() { return serves_this_program() ? 90700 : 0; }
