#pragma once
#include <nccl.h>

#include <string>

namespace mindpipe {

/// The functions of NCCL, found in the library when a job asks for it: a program that computes on processors
/// neither needs nor opens it.
struct Nccl {
  Nccl();
  decltype(&ncclGetVersion) version;
  decltype(&ncclGetUniqueId) unique_id;
  decltype(&ncclCommInitRankConfig) initialize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) state;
  decltype(&ncclGetErrorString) error_text;
  decltype(&ncclGetLastError) last_words;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;

  /// Throws a sentence unless a call went well or goes on in the background; `what` names the transport that
  /// the call was for.
  void require(ncclResult_t result, const char* call, const std::string& what) const {
    if (result != ncclSuccess && result != ncclInProgress) refuse(result, call, what);
  }
  std::string sentence(ncclResult_t result, const char* call, const std::string& what) const;

 private:
  [[noreturn]] void refuse(ncclResult_t result, const char* call, const std::string& what) const;
};

}  // namespace mindpipe
