#include "comm/device_transports.h"
#include "core/check.h"

// What device_transports.h declares, in a build without CUDA or without NCCL's header.
namespace mindpipe {

int nccl_built_with() { return 0; }
int nccl_found() { return 0; }
std::string bus_place_of_gpu() { return ""; }
std::unique_ptr<Transports> make_nccl_transports(Backend&, Waiting&, int) {
  fail(
      Exit::bad_configuration,
      "this program was built without NCCL; install its header and build again, or set device.transport=mpi");
}

}  // namespace mindpipe
