#pragma once
#include <span>
#include <string>

#include "app/verbs/arguments.h"

namespace CLI {
class App;
}

namespace mindpipe {

struct Config;

/// What a word like `train` on the command line asks for.
struct Verb {
  const char* name;
  const char* summary;       ///< for the list of all verbs
  const char* meaning;       ///< for its own help
  bool reads_config = true;  ///< else only where --config is needed for an option (doctor --tune)
  bool searches = false;     ///< for settings that are left open; others take those of the run's checkpoint
  bool has_steps = false;    ///< a signal to stop waits for the end of the step
  void (*declare)(CLI::App& app, Arguments& arguments);
  /// Does the work; returns the exit code of a job that did not fail. `config` is the default one where none
  /// is read.
  int (*run)(const Arguments& arguments, const Config& config);
};

/// All verbs, in the order of the help. The first one is meant when none is named.
std::span<const Verb> all_verbs();
const Verb& verb_named(const std::string& name);

int train(const Arguments& arguments, const Config& config);
int eval(const Arguments& arguments, const Config& config);
int generate(const Arguments& arguments, const Config& config);
int search(const Arguments& arguments, const Config& config);
int plan(const Arguments& arguments, const Config& config);
int profile(const Arguments& arguments, const Config& config);
int arithmetic(const Arguments& arguments, const Config& config);
int report(const Arguments& arguments, const Config& config);
int replay_run(const Arguments& arguments, const Config& config);
int data(const Arguments& arguments, const Config& config);
int ckpt(const Arguments& arguments, const Config& config);
int extract(const Arguments& arguments, const Config& config);
int import_model(const Arguments& arguments, const Config& config);
int doctor(const Arguments& arguments, const Config& config);  ///< with --tune: tune
int tune(const Arguments& arguments, const Config& config);

}  // namespace mindpipe
