#include "comm/nccl_library.h"

#include <dlfcn.h>

#include "comm/device_transports.h"
#include "core/check.h"
#include "open_library.h"

namespace mindpipe {
namespace {

constexpr const char* library = "libnccl.so.2";

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(cuda::symbol_of(library, name, "messages between GPUs"));
}

/// Whether a result blames another rank or the network, so that starting again from a checkpoint helps.
bool is_gone(ncclResult_t result) { return result == ncclRemoteError || result == ncclSystemError; }

}  // namespace

Nccl::Nccl() {
  find(version, "ncclGetVersion");
  find(unique_id, "ncclGetUniqueId");
  find(initialize, "ncclCommInitRankConfig");
  find(destroy, "ncclCommDestroy");
  find(abort, "ncclCommAbort");
  find(state, "ncclCommGetAsyncError");
  find(error_text, "ncclGetErrorString");
  find(last_words, "ncclGetLastError");
  find(group_start, "ncclGroupStart");
  find(group_end, "ncclGroupEnd");
  find(send, "ncclSend");
  find(receive, "ncclRecv");
}

std::string Nccl::sentence(ncclResult_t result, const char* call, const std::string& what) const {
  const char* words = last_words(nullptr);
  return fmt::format("nccl: {} for {} answered '{}'{}; {}", call, what, error_text(result),
                     words == nullptr || *words == '\0' ? "" : fmt::format(" ({})", words),
                     is_gone(result) ? "a rank or the network is gone: see the logs of the other ranks, then "
                                       "start again from the last checkpoint"
                                     : "run once more with NCCL_DEBUG=WARN, which says why, and report it");
}

void Nccl::refuse(ncclResult_t result, const char* call, const std::string& what) const {
  fail(is_gone(result) ? Exit::peer_failed : Exit::internal, "{}", sentence(result, call, what));
}

int nccl_built_with() { return NCCL_VERSION_CODE; }

int nccl_found() {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return 0;
  const auto ask = reinterpret_cast<decltype(&ncclGetVersion)>(dlsym(opened, "ncclGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == ncclSuccess ? version : 0;
}

}  // namespace mindpipe
