#include <nccl.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "comm/made_nccl/links.h"
#include "comm/made_nccl/made_nccl.h"

struct ncclComm {
  std::shared_ptr<made_nccl::Link> link;
  bool blocks = true;                ///< calls return when they are done
  std::function<bool()> unfinished;  ///< the rest of a call that goes on in the background
};

/// NCCL's functions, as its documentation describes them, and what tests change about them.
namespace made_nccl {
namespace {

using Work = std::function<ncclResult_t()>;

constexpr int none = -1, most_in_group = 2048, looks_in_background = 3;

/// Send or receive that waits for the end of its group.
struct Grouped {
  ncclComm* comm;
  Message message;
  CUstream_st* stream;
};

struct Front {
  std::vector<Call> calls;
  int left_out = none, exchanged = none;
  std::string all_left_out;
  Work put_off;
  int depth = 0, groups = 0;
  std::vector<Grouped> grouped;
  std::set<ncclComm*> comms;
  std::set<std::string> ids;  ///< identifiers that were made here, until all ranks have come
  int made = 0;
  std::vector<Bound> bounds;
  Device device;
} front;
/// The watchdog's thread asks for states while others call.
std::recursive_mutex mutex;
std::string said;

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  said = why;
  return result;
}

/// Makes a call, unless a test wants it otherwise.
ncclResult_t pass(Call call, Work work) {
  const std::lock_guard lock(mutex);
  const int number = static_cast<int>(front.calls.size());
  call.group = front.depth > 0 ? front.groups : 0;
  front.calls.push_back(call);
  if (number == front.left_out || call.function == front.all_left_out) return ncclSuccess;
  if (number == front.exchanged) return front.put_off = std::move(work), ncclSuccess;
  const ncclResult_t result = work();
  if (!front.put_off) return result;
  const ncclResult_t of_the_other = std::exchange(front.put_off, {})();
  return result == ncclSuccess ? of_the_other : result;
}

bool blocks(const ncclConfig_t& config) {
  const char* wish = std::getenv("NCCL_COMM_BLOCKING");
  return wish == nullptr ? config.blocking != 0 : std::strcmp(wish, "0") != 0;
}

ncclResult_t state_of(ncclComm* comm) {
  if (comm->link->state != 0) return static_cast<ncclResult_t>(comm->link->state.load());
  if (comm->unfinished && comm->unfinished()) comm->unfinished = {};
  return comm->unfinished ? ncclInProgress : ncclSuccess;
}

/// Lets a call go on in the background, or waits for it.
ncclResult_t finish(ncclComm* comm, std::function<bool()> work) {
  if (!comm->blocks) {
    comm->unfinished = [work = std::move(work), looks = 0]() mutable {
      return ++looks >= looks_in_background && work();
    };
    return ncclInProgress;
  }
  while (!work()) std::this_thread::yield();
  return ncclSuccess;
}

ncclResult_t initialize(ncclComm_t* to, int ranks, const std::string& id, int rank,
                        const ncclConfig_t& config) {
  if (config.magic != 0xcafebeef || config.size != sizeof config || ranks < 1 || ranks > 64 || rank < 0 ||
      rank >= ranks)
    return refuse(ncclInvalidArgument,
                  "a configuration that was not initialised, or a rank that is none of the ranks");
  if (front.depth > 0) return refuse(ncclInvalidUsage, "a communicator that is made inside a group");
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs < 1)
    return refuse(ncclInvalidArgument, "maxCTAs");
  const std::string name = config.commName == nullptr ? "a communicator" : config.commName;
  std::shared_ptr<Link> link;
  try {
    link = std::make_shared<Link>(id, ranks, rank, name);
  } catch (const std::exception& error) {
    return refuse(ncclInvalidArgument, error.what());
  }
  std::uint32_t agreed = 0;
  const bool same = link->room->ranks.compare_exchange_strong(agreed, static_cast<std::uint32_t>(ranks)) ||
                    agreed == static_cast<std::uint32_t>(ranks);
  const std::uint64_t mine = std::uint64_t{1} << rank;
  if (!same || (link->room->taken.fetch_or(mine) & mine) != 0)
    return refuse(ncclInvalidUsage,
                  "ranks of " + name + " that differ in their number, or two with one number");
  if (front.comms.empty()) {
    const char* wish = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    front.device.keeps_order = wish != nullptr && std::strcmp(wish, "1") == 0;
  }
  front.bounds.push_back({name, config.maxCTAs == NCCL_CONFIG_UNDEF_INT ? 0 : config.maxCTAs});
  ++link->room->here;
  front.comms.insert(*to = new ncclComm{link, blocks(config), {}});
  try {
    return finish(*to, [link, id, patience = std::make_shared<Patience>()] {
      patience->look(link->name);
      if (link->room->here < static_cast<std::uint32_t>(link->ranks)) return false;
      if (front.ids.erase(id) > 0) SharedRoom::forget(id);
      return true;
    });
  } catch (const std::exception& error) {
    return refuse(ncclSystemError, error.what());
  }
}

/// Puts operations into their stream: one communicator's in one stream, which is all that this program needs.
ncclResult_t launch(const std::vector<Grouped>& group) {
  if (group.empty()) return ncclSuccess;
  ncclComm* comm = group.front().comm;
  std::vector<Message> messages;
  std::vector<int> to_itself(2);
  for (const Grouped& one : group) {
    if (one.comm != comm || one.stream != group.front().stream)
      return refuse(ncclInvalidUsage,
                    "a group of several communicators or streams, which stands for nothing here");
    messages.push_back(one.message);
    if (one.message.peer == comm->link->rank) ++to_itself[one.message.sends ? 0 : 1];
    std::vector<bool>& connected = comm->link->connected;
    const auto way = static_cast<std::size_t>(one.message.peer + (one.message.sends ? 0 : comm->link->ranks));
    if (!connected[way] && front.device.connections_are_closed)
      return refuse(ncclInternalError,
                    "a connection of " + comm->link->name + " is made in the middle of a step");
    connected[way] = true;
  }
  if (to_itself[0] != to_itself[1])
    return refuse(ncclInvalidUsage, "a message of a rank to itself without both its ends in one group");
  if (!front.device.keeps_order)
    for (const ncclComm* other : front.comms)
      if (other != comm && other->link->waiting > 0)
        return refuse(ncclInvalidUsage, "several communicators at once without NCCL_LAUNCH_ORDER_IMPLICIT");
  const auto put = [stream = group.front().stream, link = comm->link, messages] {
    auto operation = std::make_shared<Operation>(front.device, link, messages);
    stream->put([operation] { return operation->turn(); });
    return true;
  };
  return finish(comm, put);
}

ncclResult_t put_in(bool sends, void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t stream) {
  static constexpr int bytes_of[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  if (!front.comms.contains(comm) || peer < 0 || peer >= comm->link->ranks || type < 0 ||
      type >= ncclNumTypes || (data == nullptr && count > 0))
    return refuse(ncclInvalidArgument, "a peer, type, address or communicator that there is not");
  if (stream == nullptr)
    return refuse(ncclInvalidUsage, "the stream that waits for all others, which this program does not use");
  if (const ncclResult_t state = state_of(comm); state != ncclSuccess)
    return refuse(state == ncclInProgress ? ncclInvalidUsage : state, comm->link->name + " is not ready");
  if (front.grouped.size() == most_in_group)
    return refuse(ncclInvalidUsage, "more operations than a group may have");
  const Grouped one{comm,
                    {sends, static_cast<std::byte*>(data), count * static_cast<std::size_t>(bytes_of[type]),
                     static_cast<std::uint64_t>(type), peer},
                    stream};
  if (front.depth == 0) return launch({one});
  front.grouped.push_back(one);
  return ncclSuccess;
}

/// Lets go of a communicator, as the last of its ranks that does so lets all of them go on.
ncclResult_t destroy(ncclComm* comm) {
  if (!front.comms.contains(comm)) return refuse(ncclInvalidArgument, "a communicator that there is not");
  if (comm->link->state != 0 || comm->link->waiting > 0 || front.depth > 0)
    return refuse(ncclInvalidUsage,
                  "a communicator that is destroyed while it works, or where it should be aborted");
  ++comm->link->room->leaving;
  Patience patience;
  while (comm->link->room->leaving < static_cast<std::uint32_t>(comm->link->ranks)) {
    try {
      patience.look(comm->link->name);
    } catch (const std::exception& error) {
      return refuse(ncclSystemError, error.what());
    }
    std::this_thread::yield();
  }
  front.comms.erase(comm);
  delete comm;
  return ncclSuccess;
}

ncclResult_t abort(ncclComm* comm) {
  if (!front.comms.contains(comm)) return refuse(ncclInvalidArgument, "a communicator that there is not");
  if (comm->link->state == 0)
    comm->link->state = ncclSystemError;  // what is in streams still does not move any more
  front.comms.erase(comm);
  delete comm;
  return ncclSuccess;
}

}  // namespace

void begin() {
  const std::lock_guard lock(mutex);
  for (ncclComm* comm : front.comms) delete comm;
  for (const std::string& id : front.ids) SharedRoom::forget(id);
  const int made = front.made;
  front = Front{};
  front.made = made;
  said.clear();
}
std::vector<Bound> bounds() { return front.bounds; }
int calls() { return static_cast<int>(front.calls.size()); }
Call call(int number) { return front.calls.at(static_cast<std::size_t>(number)); }
void leave_out(int number) { front.left_out = number; }
void exchange(int number) { front.exchanged = number; }
void leave_out_all(const std::string& function) { front.all_left_out = function; }
void lose_a_rank() {
  const std::lock_guard lock(mutex);
  for (ncclComm* comm : front.comms) comm->link->state = ncclRemoteError;
}
void close_connections() { front.device.connections_are_closed = true; }
int alive() { return static_cast<int>(front.comms.size()); }
int started() { return static_cast<int>(front.device.started); }
void give_up_after(double seconds) { Patience::seconds = seconds; }

}  // namespace made_nccl

using made_nccl::front;
using made_nccl::pass;

extern "C" {

ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t result) {
  static const char* const words[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return words[result];
}
const char* ncclGetLastError(ncclComm_t) { return made_nccl::said.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return pass({"ncclGetUniqueId"}, [=] {
    const std::string name =
        "/mindpipe-nccl-" + std::to_string(getpid()) + "-" + std::to_string(front.made++);
    made_nccl::SharedRoom::make(name);
    front.ids.insert(name);
    std::memset(id->internal, 0, sizeof id->internal);
    name.copy(id->internal, sizeof id->internal - 1);
    return ncclSuccess;
  });
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return pass({"ncclCommInitRankConfig"}, [=] {
    return made_nccl::initialize(
        comm, ranks, std::string(id.internal, strnlen(id.internal, sizeof id.internal)), rank, *config);
  });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return pass({"ncclCommDestroy"}, [=] { return made_nccl::destroy(comm); });
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return pass({"ncclCommAbort"}, [=] { return made_nccl::abort(comm); });
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(made_nccl::mutex);
  if (front.all_left_out == "ncclCommGetAsyncError") return ncclSuccess;
  if (!front.comms.contains(comm))
    return made_nccl::refuse(ncclInvalidArgument, "a communicator that there is not");
  *state = made_nccl::state_of(comm);
  if (*state != ncclSuccess && *state != ncclInProgress)
    made_nccl::said = "a rank of " + comm->link->name + " is gone";
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  return pass({"ncclGroupStart"}, [] {
    if (front.depth++ == 0) ++front.groups;
    return ncclSuccess;
  });
}
ncclResult_t ncclGroupEnd() {
  return pass({"ncclGroupEnd"}, [] {
    if (front.depth == 0) return made_nccl::refuse(ncclInvalidUsage, "the end of a group that has not begun");
    if (--front.depth > 0) return ncclSuccess;
    return made_nccl::launch(std::exchange(front.grouped, {}));
  });
}
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return pass({"ncclSend", 0, "to " + std::to_string(peer)}, [=] {
    return made_nccl::put_in(true, const_cast<void*>(data), count, type, peer, comm, stream);
  });
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return pass({"ncclRecv", 0, "from " + std::to_string(peer)},
              [=] { return made_nccl::put_in(false, data, count, type, peer, comm, stream); });
}

}  // extern "C"
