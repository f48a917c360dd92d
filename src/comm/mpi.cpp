#include "comm/mpi.h"

#include <unistd.h>

#include <cfenv>
#include <cstdlib>
#include <numeric>

#include "core/launcher.h"

namespace mindpipe {

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return {text, static_cast<std::size_t>(length)};
}

namespace detail {

void mpi_failed(const char* call, const char* file, int line, int code) {
  std::string name = call;
  name = name.substr(0, name.find('('));
  fail(Exit::peer_failed,
       "{} failed: {} ({}:{}); a rank or the network is gone: see the logs of the other ranks, then start "
       "again from the last checkpoint",
       name, mpi_error_text(code), file, line);
}

}  // namespace detail

bool mpi_is_up() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

void MpiCommTraits::release(Raw raw) noexcept {
  if (mpi_is_up()) MPI_Comm_free(&raw);
}

namespace {

/// Makes Open MPI start lightly where nobody launched this rank, which then has no peers: no daemon and no
/// search for networks, which take most of a second; and no directory for what peers share, which all such
/// processes of a user would have in one place, where one that ends takes it from one that begins. What the
/// environment already says is kept.
void start_light_when_alone() {
  if (launch().launched) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  setenv("OMPI_MCA_pml", "ob1", 0);
  setenv("OMPI_MCA_btl", "self", 0);
}

}  // namespace

/// Where somebody else has MPI up already, as a test does, it stays his.
MpiSession::Open::Open(int& argc, char**& argv) : is_own(!mpi_is_up()) {
  if (!is_own) return;
  start_light_when_alone();
  int provided = 0;  // nobody asks: of other threads the watchdog alone calls MPI, to end the job
  MPI_CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  // A library linked with -ffast-math, of MPI's or a preloaded one, has let this thread flush denormals to
  // zero; threads that compute inherit what is set here.
  MP_CHECK(std::fesetenv(FE_DFL_ENV) == 0, "the processor refuses to round as usual");
}

MpiSession::Open::~Open() {
  if (is_own && mpi_is_up()) MPI_Finalize();
}

std::shared_ptr<MpiSession::Open> MpiSession::open(int& argc, char**& argv) {
  static std::weak_ptr<Open> newest;
  std::shared_ptr<Open> one = newest.lock();
  if (!one) newest = one = std::make_shared<Open>(argc, argv);
  return one;
}

MpiSession::MpiSession(int& argc, char**& argv) : open_(open(argc, argv)) {
  MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
}

void abort_job(int exit_code) noexcept {
  int ranks = 1;
  // A rank that is alone has nobody to take along, and MPI_Abort would talk over the sentence that says what
  // happened.
  if (mpi_is_up() && MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS && ranks > 1)
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::vector<int> world_ranks(MPI_Comm ranks) {
  int size = 0;
  MPI_CHECK(MPI_Comm_size(ranks, &size));
  std::vector<int> here(static_cast<std::size_t>(size)), in_world(here.size());
  std::iota(here.begin(), here.end(), 0);
  MPI_Group some, all;
  MPI_CHECK(MPI_Comm_group(ranks, &some));
  MPI_CHECK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  MPI_CHECK(MPI_Group_translate_ranks(some, size, here.data(), all, in_world.data()));
  MPI_CHECK(MPI_Group_free(&some));
  MPI_CHECK(MPI_Group_free(&all));
  return in_world;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_CHECK(MPI_Get_library_version(text, &length));
  std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(std::string("\n\0", 2)));
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

int local_rank(const World& world) {
  if (world.comm == MPI_COMM_NULL) return 0;
  MpiComm machine;
  MPI_CHECK(
      MPI_Comm_split_type(world.comm, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL, machine.receive()));
  int rank = 0;
  MPI_CHECK(MPI_Comm_rank(machine.get(), &rank));
  return rank;
}

}  // namespace mindpipe
