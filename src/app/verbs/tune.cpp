#include "app/verbs/tune.h"

#include <fmt/core.h>

#include "app/run/run.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "hardware.h"
#include "io/file.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

/// The products of a step: the first for a weight writes its gradient, which is another product to a library.
std::vector<ProductCall> products_of_step(std::vector<ProductCall> products) {
  using Kind = ProductCall::Kind;
  for (std::size_t i = 0, passes = products.size(); i < passes; ++i) {
    ProductCall call = products[i];
    if (call.kind == Kind::backward_weight) {
      call.kind = Kind::first_weight;
      products.push_back(call);
    }
  }
  return products;
}

}  // namespace

std::vector<ProductCall> products_to_tune(const std::string& file, std::vector<std::string> settings) {
  settings.emplace_back("device.kind=cuda");  // whose chunks of the classifier are its own
  const Config given = read_config(file, settings), config = with_grid(given, ranks_of_grid(given));
  CostModel measure(config, make_layout(config, {}));
  return products_of_step(measure.passes().products());
}

int tune(const Arguments& arguments, const Config& config) {
  const std::string table = tuned_products(products_to_tune(arguments.config, arguments.overrides), 0,
                                           config.device.reserved_multiprocessors,
                                           [](const std::string& line) { print(line + "\n"); });
  NewFile file(arguments.tune);
  file.write(table.data(), table.size());
  file.commit();
  print(fmt::format("{}: give it to a run with device.kernels={}; with it the bits are others than without\n",
                    arguments.tune, arguments.tune));
  return 0;
}

}  // namespace mindpipe
