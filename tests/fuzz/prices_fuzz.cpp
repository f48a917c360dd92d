// floor: config
#include "config/config.h"
#include "config/models/prices.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  static const std::string run = folder.write("run.yaml",
                                              "run: {dir: run}\n"
                                              "model: {kind: supernet, space: {name: two, decoder: {blocks: "
                                              "2, candidates: [conv-3, mlp-2]}}, width: 16, "
                                              "context: 16, vocabulary: 64}\n"
                                              "data: {train: [synthetic:arithmetic]}\n");
  const std::string prices = folder.write("prices.yaml", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] {
    mindpipe::prices_of(mindpipe::resolve(mindpipe::read_config(run, {"supernet.prices=" + prices})));
  });
  return 0;
}
