// Time that the runtime takes from a rank that computes, on two ranks: looking after a message that is
// awaited in the background, and recording.
//   mpirun -np 2 runtime_bench [--pairs 101] [--json FILE]
#include <cstdio>
#include <fstream>
#include <string>

#include "runtime/open_receive.h"

int main(int count, char** words) {
  using namespace mindpipe;
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  World world{MPI_COMM_WORLD, 0, 1};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  int pairs = 101;
  std::string json;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(words[i]) == "--pairs") pairs = std::stoi(words[i + 1]);
    if (std::string(words[i]) == "--json") json = words[i + 1];
  }
  std::ofstream file;
  if (world.rank == 0) {
    if (!json.empty()) file.open(json);
    const RecorderCost cost = recorder_cost(pairs);
    std::printf("%s\n", to_string(cost).c_str());
    file << fmt::format(R"({{"what": "recording", "nanoseconds": {:.1f}, )"
                        R"("action_nanoseconds": {:.1f}, "share": {:.5f}}})",
                        cost.recording_ns, cost.action_ns, cost.share())
         << "\n";
  }
  for (const int width : {32, 64, 128, 256}) {
    const ShareLeft share = OpenReceive(world, width).share_left(pairs);
    if (world.rank != 0) continue;
    std::printf("%s\n", to_string(share).c_str());
    file << fmt::format(R"({{"what": "waiting", "width": {}, )"
                        R"("operation_microseconds": {:.1f}, "share": {:.4f}, "load": {:.1f}}})",
                        width, share.operation, share.share, share.load)
         << "\n";
  }
  MPI_Finalize();
}
