#pragma once
#include <dlfcn.h>
#include <sys/auxv.h>

/// Exported by programs that plan on paper, and defined by nothing here: what stands in place of a library
/// cannot be loaded into a program that does not have it.
extern "C" int plans_on_paper;

/// Whether the program itself has it, and not a library that was loaded beside it.
inline bool serves_this_program() {
  Dl_info asks{}, program{};
  return dladdr(&plans_on_paper, &asks) != 0 &&
         dladdr(reinterpret_cast<void*>(getauxval(AT_PHDR)), &program) != 0 &&
         asks.dli_fbase == program.dli_fbase;
}
