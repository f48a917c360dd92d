// Times of the operations of a training step, one kind at a time, beside the best this device does: a
// large product and a copy.
//   kernels_bench [--device cuda|cpu] [--dtype bf16|f32] [--samples 32] [--sequence 1024] [--width 768]
//   [--heads 12] [--layers 12]
//                 [--vocabulary 50304] [--pictures SIDE] [--product 8192] [--copy-mib 1024] [--least-seconds
//                 0.02] [--only TEXT] [--json FILE]
// With --pictures the operations are those on square pictures of --samples and --width channels; with --only
// those whose names hold the text.
// Each call is one of many in a row, timed by the host between two waits for the device, so the time to start
// it counts where that is the longer one. Operands are normal numbers; three sets of them are used in turn.
#include <cstdio>
#include <fstream>
#include <map>

#include "config/kinds.h"
#include "core/check.h"
#include "make_backend.h"
#include "step_kernels.h"

using namespace mindpipe;
using namespace mindpipe::bench;

namespace {

struct Options {
  std::string device_name = "cuda", dtype = "bf16", only, json;
  DeviceKind device = DeviceKind::cuda;
  double least_seconds = 0.02;
  std::int64_t product = 8192, copy_mib = 1024, pictures = 0;
  Sizes sizes;
};

Options options_of(int count, char** words) {
  Options o;
  std::map<std::string, std::int64_t*> numbers{
      {"--samples", &o.sizes.samples}, {"--sequence", &o.sizes.sequence},
      {"--width", &o.sizes.width},     {"--heads", &o.sizes.heads},
      {"--layers", &o.sizes.layers},   {"--vocabulary", &o.sizes.vocabulary},
      {"--product", &o.product},       {"--copy-mib", &o.copy_mib},
      {"--pictures", &o.pictures}};
  std::map<std::string, std::string*> texts{
      {"--device", &o.device_name}, {"--dtype", &o.dtype}, {"--only", &o.only}, {"--json", &o.json}};
  for (int i = 1; i < count; i += 2) {
    const std::string key = words[i];
    MP_REQUIRE(i + 1 < count, Exit::usage, "kernels_bench: {} needs a value", key);
    if (numbers.contains(key)) *numbers[key] = std::stoll(words[i + 1]);
    else if (texts.contains(key)) *texts[key] = words[i + 1];
    else if (key == "--least-seconds") o.least_seconds = std::stod(words[i + 1]);
    else fail(Exit::usage, "kernels_bench: no option {}; its first lines list them", key);
  }
  const auto device = kind_named<DeviceKind>(o.device_name);
  MP_REQUIRE(device == DeviceKind::cuda || device == DeviceKind::cpu, Exit::usage,
             "--device {} (cuda or cpu)", o.device_name);
  o.device = *device;
  const auto precision = kind_named<Precision>(o.dtype);
  MP_REQUIRE(precision, Exit::usage, "--dtype {} (bf16 or f32)", o.dtype);
  o.sizes.dtype = row_of(*precision).dtype;
  return o;
}

/// `copied` are the bytes a second that a copy reads and writes.
void print_line(const Kernel& kernel, double seconds, double copied) {
  const double bytes = kernel.bytes / seconds;
  std::printf("%-26s %-36s %6.4g x %10.2f us %9.1f TFLOP/s %9.1f GB/s, %4.2f of a copy\n",
              kernel.name.c_str(), kernel.shape.c_str(), kernel.calls, seconds * 1e6,
              kernel.operations / seconds * 1e-12, bytes * 1e-9, bytes / copied);
  std::fflush(stdout);
}

int run(const Options& o) {
  Memory memory(o.device == DeviceKind::cuda ? Memory::Kind::device : Memory::Kind::host);
  const auto backend =
      o.device == DeviceKind::cuda ? make_cuda_backend(memory, 0) : make_cpu_backend(memory, 0, "auto");
  std::printf("%s\n", backend->description().c_str());
  const Kernel product = large_product(o.product, o.sizes.dtype), copy = large_copy(o.copy_mib << 20);
  const double product_seconds = seconds_of(product, *backend, o.least_seconds),
               copy_seconds = seconds_of(copy, *backend, o.least_seconds);
  const double copied = copy.bytes / copy_seconds;
  print_line(product, product_seconds, copied);
  print_line(copy, copy_seconds, copied);
  std::string text =
      fmt::format(R"({{"device": "{}", "dtype": "{}", "operations_per_second": {:.6g}, )"
                  R"("bytes_per_second": {:.6g}, "kernels": [)",
                  backend->description(), o.dtype, product.operations / product_seconds, copied);
  const char* between = "\n";
  for (const Kernel& kernel :
       o.pictures > 0 ? kernels_of_pictures(o.sizes, o.pictures) : kernels_of_a_step(o.sizes)) {
    if (kernel.name.find(o.only) == std::string::npos) continue;
    const double seconds = seconds_of(kernel, *backend, o.least_seconds);
    print_line(kernel, seconds, copied);
    text += fmt::format(R"({}{{"name": "{}", "shape": "{}", "calls": {:g}, )"
                        R"("seconds": {:.6g}, "operations": {:.6g}, "bytes": {:.6g}}})",
                        between, kernel.name, kernel.shape, kernel.calls, seconds, kernel.operations,
                        kernel.bytes);
    between = ",\n";
  }
  if (o.json.empty()) return 0;
  std::ofstream file(o.json);
  file << text << "]}\n" << std::flush;
  MP_REQUIRE(file, Exit::cannot_create, "--json: {} cannot be written; name a file in a folder that is there",
             o.json);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(options_of(count, words));
  } catch (const Error& error) {
    std::fprintf(stderr, "kernels_bench: %s\n", error.what());
    return static_cast<int>(error.code);
  }
}
