#pragma once
#include <mutex>
#include <vector>

#include "backend.h"
#include "comm/nccl_library.h"
#include "comm/transport.h"
#include "comm/waiting.h"

namespace mindpipe {

/// Transports by NCCL. Each is a communicator of NCCL, whose messages are matched in order and with nothing
/// else.
///
/// NCCL keeps the operations of all communicators of a GPU in the order of the calls
/// (NCCL_LAUNCH_ORDER_IMPLICIT), so calls come from one thread. All connections are made when a transport is,
/// so that no later call waits for another host.
class NcclTransports final : public Transports {
 public:
  NcclTransports(Backend& backend, Waiting& waiting, int reserved);
  ~NcclTransports() override;
  std::unique_ptr<Transport> among(MPI_Comm ranks, Use use, const std::string& name,
                                   std::span<const int> peers = {}) override;
  std::string trouble() override;

 private:
  class Link;
  /// Waits until a communicator's call is done. It is done at once unless NCCL_COMM_BLOCKING=0 puts calls
  /// into the background.
  void settle(const Link& link, ncclResult_t result, const char* call);
  void connect(Link& link, Use use, int rank, int size, std::span<const int> peers);

  Nccl library_;
  Backend& backend_;
  Waiting& waiting_;
  int reserved_;              ///< multiprocessors that products leave alone
  std::mutex mutex_;          ///< for alive_, at which the watchdog looks too
  std::vector<Link*> alive_;  ///< ordered as they were made
};

}  // namespace mindpipe
