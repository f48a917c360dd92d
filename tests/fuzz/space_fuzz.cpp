// floor: config
#include "config/config.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  static const std::string run =
      folder.write("run.yaml",
                   "run: {dir: run}\n"
                   "model: {kind: supernet, width: 16, heads: 2, context: 16, vocabulary: 64}\n"
                   "data: {train: [synthetic:arithmetic]}\n");
  const std::string space = folder.write("space.yaml", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] { mindpipe::resolve(mindpipe::read_config(run, {"model.space=" + space})); });
  return 0;
}
