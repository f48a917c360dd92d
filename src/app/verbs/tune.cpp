#include <fmt/core.h>
#include "app/run/run.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "hardware.h"
#include "io/file.h"
#include "plan/cost_model.h"

namespace mindpipe {

int tune(const Arguments& arguments, const Config& given) {
  const Config config = with_grid(given, ranks_of_grid(given));
  CostModel measure(config, make_layout(config, {}));
  const std::string table = tuned_products(measure.products(), 0, config.device.reserved_multiprocessors,
                                           [](const std::string& line) { print(line + "\n"); });
  NewFile file(arguments.tune);
  file.write(table.data(), table.size());
  file.commit();
  print(fmt::format("{}: give it to a run with device.kernels={}; with it the bits are others than without\n",
                    arguments.tune, arguments.tune));
  return 0;
}

}  // namespace mindpipe
