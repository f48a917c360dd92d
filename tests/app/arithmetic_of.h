#pragma once
#include <string>
#include <vector>

#include "app/plan/grid_choice.h"
#include "app/run/run_arithmetic.h"
#include "app/run/run_inputs.h"
#include "config/config.h"

namespace mindpipe {

using Overrides = std::vector<std::string>;

inline constexpr const char* kernels_of_tests = "cpu: avx512, 2 threads";

/// A configuration of configs/ with settings over it, for as many ranks as it says.
inline Config shards_of(const std::string& name, const Overrides& more) {
  Overrides all{"reproducible.data=2", "reproducible.tensor=2"};
  all.insert(all.end(), more.begin(), more.end());
  const Config config = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", all);
  return on_paper(config, ranks_of_grid(config));
}

inline RunArithmetic arithmetic_at(const Config& config, const std::string& kernels = kernels_of_tests) {
  return RunArithmetic(config, kernels, inputs_of(config));
}

}  // namespace mindpipe
