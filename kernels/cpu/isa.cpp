#include "cpu/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/check.h"

namespace mindpipe {

const char* name_of(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline"; }

bool processor_has(Isa isa) {
  __builtin_cpu_init();
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    case Isa::avx512:
      return processor_has(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

bool processor_has_bf16_pairs() { return processor_has(Isa::avx512) && __builtin_cpu_supports("avx512bf16"); }

bool processor_has_amx() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const bool tiles = (d >> 24) & 1, bf16 = (d >> 22) & 1;
  constexpr long request_permission = 0x1023, tile_data = 18;  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  return tiles && bf16 && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

Isa choose_isa(const std::string& instructions) {
  if (instructions == "auto") return processor_has(Isa::avx512) ? Isa::avx512 : processor_has(Isa::avx2) ? Isa::avx2 : Isa::baseline;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (instructions == name_of(isa)) {
      MP_REQUIRE(processor_has(isa), Exit::bad_configuration, "device.instructions: this processor has no {}; use auto", instructions);
      return isa;
    }
  fail(Exit::bad_configuration, "device.instructions is '{}' (auto, avx512, avx2 or baseline)", instructions);
}

}  // namespace mindpipe
