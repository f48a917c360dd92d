// ranks: 2
#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/mutation.h"
#include "runtime/parity_cases.h"

namespace mindpipe {
namespace {

/// One collective (or one step of a sum) to leave out, and a layout of two ranks on which that must not go unnoticed.
struct Mutation {
  const char* name;
  const char* layout;  ///< "tensor", "sequence", "data", "zero", "zero2", "pipeline"
  Style style = Style::gpt2;
};

Config layout_of(const Mutation& mutation) {
  const std::string layout = mutation.layout;
  Config c = tiny(mutation.style, 2, 2, 2);
  c.grid = {1, layout == "pipeline" ? 2 : 1, layout == "data" || layout.starts_with("zero") ? 2 : 1,
            layout == "tensor" || layout == "sequence" ? 2 : 1};
  c.train.sequence_parallel = layout == "sequence";
  c.train.zero = layout == "zero2" ? 2 : layout == "zero" ? 1 : 0;
  return resolve(c);
}

/// Trains with the mutation, looks at the weights without it.
std::string noticed(const Mutation& mutation, const std::string& name) {
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  const Config config = layout_of(mutation);
  const Outcome wanted = outcome_of(alone(config), {}, 2);
  Worker worker(config, world);
  worker.waiting().set_crowded(true);
  Outcome got;
  set_mutation(name);
  train_some(worker, 2, got);
  set_mutation("");
  std::string text;
  try {
    got.state = worker.state_digest();
    text = difference(got, wanted);
  } catch (const Error& error) {
    text = error.what();  // replicas that differ are an error of their own, on both of them
  }
  int here = text.empty() ? 0 : 1, anywhere = 0;
  MPI_Allreduce(&here, &anywhere, 1, MPI_INT, MPI_MAX, world.comm);
  return anywhere == 0 ? "" : text.empty() ? "noticed by the other rank" : text;
}

class Mutations : public ::testing::TestWithParam<Mutation> {};

TEST_P(Mutations, AreNoticedAndNothingElseIs) {
  EXPECT_EQ(noticed(GetParam(), "nothing.at_all"), "");
  EXPECT_NE(noticed(GetParam(), GetParam().name), "") << GetParam().name << " can be left out without a test failing";
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutations,
    ::testing::Values(Mutation{"tensor.sum", "tensor"}, Mutation{"tensor.maximum", "tensor"}, Mutation{"tensor.sum_scalars", "tensor"},
                      Mutation{"tensor.sum", "sequence"}, Mutation{"tensor.sum_scatter", "sequence"}, Mutation{"tensor.gather", "sequence"},
                      Mutation{"tensor.sum", "tensor", Style::translator}, Mutation{"tensor.gather", "sequence", Style::translator},
                      Mutation{"data.sum", "data"}, Mutation{"data.sum_scalars", "data"}, Mutation{"data.sum_integers", "data"},
                      Mutation{"data.sum_scatter", "zero"}, Mutation{"data.gather", "zero"}, Mutation{"data.sum_scalars", "zero"},
                      Mutation{"data.sum_scatter", "zero2"}, Mutation{"data.gather", "zero2"}, Mutation{"data.sum_scalars", "zero2"},
                      Mutation{"replicas.add_uses", "zero2"}, Mutation{"replicas.clear", "zero2"},
                      Mutation{"pipeline.sum_scalars", "pipeline"}, Mutation{"replicas.add_uses", "pipeline"},
                      Mutation{"replicas.add_uses", "data", Style::translator}, Mutation{"replicas.fold", "pipeline"},
                      Mutation{"replicas.fold", "tensor"}, Mutation{"replicas.clear", "pipeline"},
                      Mutation{"replicas.combine_sequence", "tensor"}, Mutation{"replicas.combine_sequence", "sequence", Style::llama}),
    [](const auto& info) {
      std::string name = fmt::format("{}_{}_{}", info.param.name, info.param.layout, name_of(info.param.style));
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace mindpipe
