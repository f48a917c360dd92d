#include "open_library.h"

#include <dlfcn.h>

#include "core/check.h"

namespace mindpipe::cuda {

void* symbol_of(const std::string& library, const char* name, const char* needed_for) {
  void* opened =
      dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // opened once, whoever asks again gets the same
  if (opened == nullptr) {
    const char* why = dlerror();
    fail(Exit::bad_configuration,
         "cuda: {} cannot be opened ({}), which {} need; load the module of CUDA, or add its folder to "
         "LD_LIBRARY_PATH",
         library, why == nullptr ? "no reason given" : why, needed_for);
  }
  void* found = dlsym(opened, name);
  MP_REQUIRE(found != nullptr, Exit::bad_configuration,
             "cuda: {} has no {}; use the version that this program was built with", library, name);
  return found;
}

}  // namespace mindpipe::cuda
