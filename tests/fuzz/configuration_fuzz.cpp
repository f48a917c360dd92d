// floor: config
#include "config/config.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const std::string file = folder.write("run.yaml", mindpipe::text_of(data, size));
  mindpipe::read_or_refuse([&] {
    const mindpipe::Config config = mindpipe::resolve(mindpipe::read_config(file, {}));
    // What is printed reads back as it was.
    const std::string again = folder.write("again.yaml", mindpipe::to_yaml(config));
    MP_CHECK(mindpipe::resolve(mindpipe::read_config(again, {})) == config,
             "another configuration is printed");
  });
  return 0;
}
