#pragma once
#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/handle.h"

namespace mindpipe {

/// The sentence that MPI has for an error code.
std::string mpi_error_text(int code);

namespace detail {
[[noreturn]] void mpi_failed(const char* call, const char* file, int line, int code);
}

struct MpiCommTraits {
  using Raw = MPI_Comm;
  static Raw none() { return MPI_COMM_NULL; }
  static void release(Raw raw) noexcept;
};
/// Owns a communicator of MPI's. Letting go of it is collective over its ranks.
using MpiComm = Handle<MpiCommTraits>;

/// The ranks of a job as its launcher started them. Without MPI: one rank, no communicator.
struct World {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
};

/// Holds MPI open from its construction to its end, made before anything that uses MPI. One that is made
/// while another lives holds the same MPI: it is closed with the last.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm world() const { return MPI_COMM_WORLD; }

 private:
  struct Open {
    Open(int& argc, char**& argv);
    ~Open();
    bool is_own;
  };
  static std::shared_ptr<Open> open(int& argc, char**& argv);

  std::shared_ptr<Open> open_;
  int rank_ = 0, size_ = 1;
};

/// Whether MPI is up: initialised and not yet finalized.
bool mpi_is_up();
/// Ends every rank of the job with this exit code; without MPI, this process. Callable from any thread,
/// unwinds nothing.
[[noreturn]] void abort_job(int exit_code) noexcept;
/// Numbers in the job of a communicator's ranks: the ones that launchers and people speak of.
std::vector<int> world_ranks(MPI_Comm ranks);
/// Name and version of the MPI library in one line: "Open MPI v4.1.4, ...".
std::string mpi_library();
std::string host_name();
/// Number of this rank among the job's ranks on this machine. Collective over the job's ranks.
int local_rank(const World& world);

}  // namespace mindpipe

/// Calls MPI, and throws an Error with exit code 76 and MPI's own sentence when an MPI call fails.
#define MPI_CHECK(call)                                                                                 \
  do {                                                                                                  \
    const int mpi_code_ = (call);                                                                       \
    if (mpi_code_ != MPI_SUCCESS) ::mindpipe::detail::mpi_failed(#call, __FILE__, __LINE__, mpi_code_); \
  } while (false)
