#include "plans/reserved_processors.h"

#include "core/check.h"

namespace mindpipe {

int processors_left(int of_gpu, int reserved) {
  MP_REQUIRE(reserved < of_gpu, Exit::bad_configuration,
             "device.reserved_multiprocessors is {}, and the GPU has {}, so none would be left to products; "
             "leave most of them to products (8 or 16 are enough for messages)",
             reserved, of_gpu);
  return reserved == 0 ? 0 : of_gpu - reserved;
}

}  // namespace mindpipe
