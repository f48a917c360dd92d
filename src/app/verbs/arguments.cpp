#include "app/verbs/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/run/version.h"
#include "app/verbs/verbs.h"
#include "config/settings.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

std::string overview() {
  std::string text =
      R"(mindpipe-train: trains large Transformers over MPI, with the same bits on every layout.

  mindpipe-train [VERB] --config FILE [key=value ...]

)";
  for (const Verb& verb : all_verbs()) text += fmt::format("  {:<11} {}\n", verb.name, verb.summary);
  return text + R"(
Start it with mpirun -n 8 or srun. Any setting of the file can be changed by key=value: train.steps=20.
mindpipe-train VERB --help says more about a verb, --help-config lists every setting,
--version names this build.
)";
}

/// All option names that could have been meant.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    for (const std::string& name : option_names(*sub)) names.push_back(name);
  return names;
}

[[noreturn]] void refuse(const CLI::App& app, const std::string& verb, const std::string& problem,
                         const std::vector<std::string>& extras) {
  if (!extras.empty()) {
    const std::string& word = extras.front();
    fail(Exit::usage, "command line: {} is not an option of {}{}", word, verb,
         did_you_mean(word.substr(0, word.find('=')), option_names(app)));
  }
  std::string sentence = problem;
  while (!sentence.empty() && (sentence.back() == '\n' || sentence.back() == '.')) sentence.pop_back();
  fail(Exit::usage, "command line: {} (mindpipe-train {} --help shows how it is used)", sentence, verb);
}

/// Takes the verb off the front of the words; an option or key=value in front means the first verb.
std::string take_verb(std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
  if (words.empty() || words[0].starts_with("-") || words[0].find('=') != std::string::npos) return names[0];
  std::string verb = words[0];
  const bool known = std::find(names.begin(), names.end(), verb) != names.end();
  if (!known && (verb.ends_with(".yaml") || verb.ends_with(".yml")))
    fail(Exit::usage, "command line: {} is not a verb; did you mean --config {}?", verb, verb);
  MP_REQUIRE(known, Exit::usage, "command line: {} is not a verb ({}){}", verb, join(names, ", "),
             did_you_mean(verb, names));
  words.erase(words.begin());
  return verb;
}

/// What the words of a verb ask for; sets `answer` where they ask for a text.
void parse_words(const Verb& verb, const std::vector<std::string>& words, Arguments& a) {
  CLI::App app(verb.meaning, std::string("mindpipe-train ") + verb.name);
  const auto said = [&](const char* option) {
    return std::find(words.begin(), words.end(), option) != words.end();
  };
  bool version = said("--version"), help_config = said("--help-config");
  app.add_flag("--version", version, "name this build, its libraries and this processor");
  app.add_flag("--help-config", help_config, "list every setting");
  verb.declare(app, a);
  try {  // --version and --help-config answer alone, whatever else is there
    if (version) a.answer = version_text();
    else if (help_config) a.answer = config_help();
    else app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    a.answer = chosen.empty() ? app.help() : chosen.front()->help(app.get_name());
  } catch (const CLI::ParseError& problem) {
    refuse(app, verb.name, problem.what(), app.remaining(true));
  }
  for (const CLI::App* chosen : app.get_subcommands())
    a.data.action = a.checkpoint.action = chosen->get_name();
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  a.argc = argc;
  a.argv = argv;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  MP_REQUIRE(
      !words.empty(), Exit::usage,
      "command line: nothing is asked for (mindpipe-train --config FILE trains, --help shows the rest)");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    a.answer = overview();
    return a;
  }
  a.verb = take_verb(words);
  const Verb& verb = verb_named(a.verb);
  parse_words(verb, words, a);
  if (!a.answer.empty()) return a;

  a.reads_config = verb.reads_config || !a.tune.empty();
  MP_REQUIRE(!a.reads_config || !a.config.empty(), Exit::usage,
             "command line: --config FILE is missing ({} needs one; configs/ holds examples)",
             a.tune.empty() ? a.verb : "doctor --tune");
  MP_REQUIRE(a.layouts.most_ranks == 0 || a.layouts.search, Exit::usage,
             "command line: --ranks {}..{} compares plans, which --search makes (give it, or one number)",
             a.ranks, a.layouts.most_ranks);
  const bool exports = a.verb == "ckpt" || a.verb == "extract";
  MP_REQUIRE(a.reads_config || (a.config.empty() && (a.overrides.empty() || exports)), Exit::usage,
             "command line: a configuration is read only by doctor --tune TABLE; doctor alone examines this "
             "machine");
  for (const std::string& text : a.overrides)
    MP_REQUIRE(text.find('=') != std::string::npos, Exit::usage,
               "command line: {} is not key=value (like {})", text,
               exports ? "export.precision=bf16" : "train.steps=20");
  for (const std::string& text : a.overrides)
    MP_REQUIRE(!exports || text.starts_with("export."), Exit::usage,
               "command line: {} is a setting of the run (here are export.part, export.precision and "
               "export.names)",
               text);
  return a;
}

}  // namespace mindpipe
