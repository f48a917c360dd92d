#include "cpu/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/check.h"
#include "hardware.h"

namespace mindpipe {

namespace {

bool processor_has_tiles() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const bool tiles = (d >> 24) & 1, bf16 = (d >> 22) & 1;
  constexpr long request_permission = 0x1023,
                 tile_data = 18;  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  return tiles && bf16 && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512", "avx512+bf16", "avx512+amx"};
  return names[static_cast<int>(isa)];
}

bool processor_has(Isa isa) {
  __builtin_cpu_init();
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    case Isa::avx512:
      return processor_has(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case Isa::avx512_bf16:
      return processor_has(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
    case Isa::avx512_amx:
      return processor_has(Isa::avx512) && processor_has_tiles();
  }
  return false;
}

Isa choose_isa(const std::string& instructions) {
  if (instructions == "auto") {
    Isa best = Isa::baseline;
    for (Isa isa : all_isas)
      if (processor_has(isa)) best = isa;
    return best;
  }
  std::string names;
  for (Isa isa : all_isas) {
    if (instructions == name_of(isa)) {
      MP_REQUIRE(processor_has(isa), Exit::bad_configuration,
                 "device.instructions: this processor has no {}; use auto", instructions);
      return isa;
    }
    (names += ", ") += name_of(isa);
  }
  fail(Exit::bad_configuration, "device.instructions is '{}' (auto{})", instructions, names);
}

std::string instruction_sets() {
  std::string sets;
  for (Isa isa : all_isas)
    if (isa != Isa::baseline && processor_has(isa)) (sets += sets.empty() ? "" : " ") += name_of(isa);
  return sets.empty() ? "baseline only" : sets;
}

}  // namespace mindpipe
