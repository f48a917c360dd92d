// What a message that is awaited in the background costs a rank that computes on one processor, on two ranks.
//   mpirun -np 2 waiting_bench [--rounds 101] [--json FILE]
#include <cstdio>
#include <fstream>
#include <string>

#include "comm/open_receive.h"

int main(int count, char** words) {
  using namespace mindpipe;
  MPI_Init(&count, &words);
  int rounds = 101, rank = 0;
  std::string json;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(words[i]) == "--rounds") rounds = std::stoi(words[i + 1]);
    if (std::string(words[i]) == "--json") json = words[i + 1];
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::ofstream file;
  if (rank == 0 && !json.empty()) file.open(json);
  for (const std::int64_t n : {64, 128, 256, 512}) {
    const ShareLeft share = share_left(n, rounds);
    if (rank != 0) continue;
    std::printf("%s\n", to_string(share).c_str());
    file << fmt::format(R"({{"n": {}, "microseconds": {:.1f}, "of_processor": {:.4f}, "of_wall": {:.4f}, "load": {:.1f}}})", n,
                        share.microseconds, share.of_processor, share.of_wall, share.load)
         << "\n";
  }
  MPI_Finalize();
}
