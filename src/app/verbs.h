#pragma once
#include "app/arguments.h"
#include "config/config.h"

namespace mindpipe {

// One function per verb; each returns the exit code of a job that did not fail.
int train(const Arguments& arguments, const Config& config);
int eval(const Arguments& arguments, const Config& config);
int generate(const Arguments& arguments, const Config& config);
int plan(const Arguments& arguments, const Config& config);
int data(const Arguments& arguments);
int doctor(const Arguments& arguments);
int tune(const Arguments& arguments, const Config& config);  ///< doctor --tune

}  // namespace mindpipe
