// Cost of the fixed tree: sums over ranks by Communicator::sum beside MPI_Allreduce, whose order depends
// on the number of ranks. Interleaved, medians, the slowest rank of each round. Run with mpirun on two ranks
// or more:
//   mpirun -n 2 sums_bench [--rounds 21] [--json FILE]
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/group.h"
#include "comm/mpi.h"
#include "core/clock.h"
#include "make_backend.h"

namespace {

using namespace mindpipe;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Seconds that the slowest rank needs; all begin together.
template <class Work>
double timed(const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const std::int64_t start = now_ns();
  work();
  double mine = 1e-9 * static_cast<double>(now_ns() - start), all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rounds = 21, ranks = 1, rank = 0;
  std::string json;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(words[i]) == "--rounds") rounds = std::stoi(words[i + 1]);
    if (std::string(words[i]) == "--json") json = words[i + 1];
  }
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    Memory memory(Memory::Kind::host);
    const auto backend = make_cpu_backend(memory, 1, "auto");
    Waiting waiting;
    Communicator group(*backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), ranks, Axis::tensor);
    std::ofstream file;
    if (rank == 0 && !json.empty()) file.open(json);
    if (rank == 0)
      std::printf("f32 sums over %d ranks, medians of %d rounds\n%12s %14s %14s %18s\n", ranks, rounds, "KiB",
                  "tree, ms", "MPI, ms", "MPI's time / ours");
    for (const std::int64_t kib : {64, 512, 3072, 32768}) {
      const std::int64_t values = kib * 256;
      Arena arena(memory, MemoryClass::workspace, bytes_for({values}, DType::f32));
      const Tensor x = arena.take({values}, DType::f32);
      backend->fill({x, 0});
      group.reserve(x.bytes());
      std::vector<double> ours, theirs;
      for (int round = 0; round <= rounds; ++round) {
        const double tree = timed([&] { group.sum(x, x); });
        const double library = timed([&] {
          MPI_Allreduce(MPI_IN_PLACE, x.data, static_cast<int>(values), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        });
        if (round > 0) {
          ours.push_back(tree);
          theirs.push_back(library);
        }
      }
      if (rank == 0) {
        std::printf("%12lld %14.3f %14.3f %18.2f\n", static_cast<long long>(kib), 1e3 * median(ours),
                    1e3 * median(theirs), median(theirs) / median(ours));
        if (file)
          file << fmt::format("{{\"kib\": {}, \"tree_ms\": {:.4f}, \"mpi_ms\": {:.4f}}}\n", kib,
                              1e3 * median(ours), 1e3 * median(theirs));
      }
    }
  }
  MPI_Finalize();
}
