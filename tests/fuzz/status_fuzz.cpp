// floor: app
#include "app/report/loss_curve.h"
#include "app/run/json_read.h"
#include "app/run/run_directory.h"
#include "app/run/run_lock.h"
#include "fuzz/fuzz.h"

// The bytes are a run's status.json, its lock and its metrics.jsonl in turn.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mindpipe::FuzzFolder folder;
  const auto bytes = mindpipe::text_of(data, size);
  mindpipe::read_or_refuse([&] { mindpipe::read_json(std::string(bytes)); });
  const std::string lock = folder.write("lock", bytes);
  mindpipe::read_or_refuse([&] { mindpipe::is_held(lock); });
  std::error_code none;
  std::filesystem::remove(lock, none);
  folder.write("metrics.jsonl", bytes);
  mindpipe::read_or_refuse([&] { mindpipe::read_losses(folder / ""); });
  folder.write("metrics.jsonl", bytes);
  folder.write("status.json", bytes);
  mindpipe::read_or_refuse([&] {
    mindpipe::RunDirectory run(folder / "");
    run.keep_metrics_through(3, true);
    run.write_status({"done", 3, "", ""});
  });
  return 0;
}
