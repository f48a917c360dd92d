#include "app/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "app/version.h"
#include "config/config.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

const std::vector<std::string> verbs{"train", "eval", "generate", "plan", "data", "doctor"};

const char* const overview =
    R"(mindpipe-train: trains large Transformers over MPI, with the same bits on every layout.

  mindpipe-train [VERB] --config FILE [key=value ...]

  train      train a model, or go on with one (the verb when none is named)
  eval       loss of a trained model on data.validation
  generate   text from a trained model
  plan       what every rank would do and hold; --simulate: how long a step takes
  data       import, inspect or synthesize token files
  doctor     examine this machine and say what to do about it

Start it with mpirun -n 8 or srun. Any setting of the file can be changed by key=value: train.steps=20.
mindpipe-train VERB --help says more about a verb, --help-config lists every setting, --version names this build.
)";

/// Integers are written on the command line as in a configuration: 010 is neither ten nor eight.
std::string refuse_unless_plain(const std::string& text) {
  return is_plain_integer(text) ? "" : "'" + text + "' is not an integer in plain digits (40)";
}
const CLI::Validator plain_integer(refuse_unless_plain, "");
const CLI::Validator plain_seed(
    [](const std::string& text) {
      if (const std::string problem = refuse_unless_plain(text); !problem.empty()) return problem;
      std::uint64_t seed = 0;
      return std::from_chars(text.data(), text.data() + text.size(), seed).ec == std::errc{}
                 ? std::string()
                 : "'" + text + "' is not a seed (0 to 18446744073709551615)";
    },
    "");

const char* meaning_of(const std::string& verb) {
  if (verb == "train") return "Train a model, or go on with one.";
  if (verb == "eval") return "Loss of a trained model on data.validation.";
  if (verb == "generate") return "Text from a trained model (generate.prompt=... generate.tokens=...).";
  if (verb == "plan")
    return "What every stage would do and hold, for any number of ranks, without training; with --simulate, "
           "how long a step takes.";
  if (verb == "data") return "Import, inspect or synthesize token files.";
  return "Examine this machine and say what to do about it, or tune products for its GPU.";
}

void declare_run(CLI::App& app, Arguments& a, std::string& walltime) {
  app.add_option("--config", a.config, "the configuration, a YAML file")->option_text("FILE");
  app.add_option("key=value", a.overrides, "settings that take the file's place")->option_text("...");
  app.add_flag("--print-config", a.print_config, "print every setting, resolved, and stop");
  if (a.verb == "train")
    app.add_flag("--dry-run", a.dry_run, "check everything, print layout and memory, train nothing");
  if (a.verb == "train")
    app.add_option("--max-walltime", walltime, "the same as run.max_walltime=TIME (23h50m)")
        ->option_text("TIME");
  if (a.verb == "plan")
    app.add_flag("--simulate", a.simulate,
                 "run the step in virtual time on device.description and device.links: its length, tokens/s, "
                 "and the idle share of every stage");
  if (a.verb == "plan" || a.verb == "train")
    app.add_option("--ranks", a.ranks, "plan, or dry run, for this many ranks")
        ->check(plain_integer)
        ->check(CLI::Range(1, 1 << 20))
        ->option_text("N");
}

void declare_doctor(CLI::App& app, Arguments& a) {
  app.add_option("--tune", a.tune,
                 "time the products of a configuration on a GPU and write the table for device.kernels")
      ->option_text("TABLE");
  app.add_option("--config", a.config, "--tune: the configuration, a YAML file")->option_text("FILE");
  app.add_option("key=value", a.overrides, "--tune: settings that take the file's place")->option_text("...");
}

void declare_data(CLI::App& app, Arguments& a) {
  DataArguments& data = a.data;
  app.require_subcommand(1);
  CLI::App* importer = app.add_subcommand("import", "turn a text into a token file, one token a byte");
  importer->add_option("INPUT", data.input, "a text, or one JSON object per line")
      ->required()
      ->option_text("");
  importer->add_option("--output", data.output, "write PREFIX.bin and PREFIX.idx")
      ->required()
      ->option_text("PREFIX");
  importer
      ->add_option("--format", data.format,
                   "text: one document; paragraphs: one each; jsonl; auto: by the file's ending")
      ->check(CLI::IsMember({"auto", "text", "paragraphs", "jsonl"}))
      ->option_text("FORMAT");
  importer->add_flag_callback("--jsonl", [&] { data.format = "jsonl"; })
      ->description("the same as --format jsonl");
  importer->add_option("--key", data.key, "jsonl: the member that holds the text (text)")->option_text("KEY");
  importer->add_flag("--end-of-text", data.end_of_text, "end every document in token 256");
  CLI::App* inspect = app.add_subcommand("inspect", "say what a token file or a text holds");
  inspect->add_option("PREFIX", data.input, "the path without .bin, or a .txt file")
      ->required()
      ->option_text("");
  inspect->add_option("--show", data.show, "print this many tokens as text (64)")
      ->check(plain_integer)
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->option_text("N");
  CLI::App* synthesize = app.add_subcommand("synthesize", "make a corpus from rules");
  synthesize->add_option("NAME", data.input, "arithmetic")->required()->option_text("");
  synthesize->add_option("--output", data.output, "write PREFIX.bin and PREFIX.idx, or a .txt file")
      ->required()
      ->option_text("PREFIX");
  synthesize->add_option("--documents", data.documents, "how many (1000)")
      ->check(plain_integer)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("N");
  synthesize->add_option("--seed", data.seed, "the same seed, the same corpus (1)")
      ->check(plain_seed)
      ->option_text("S");
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

/// Takes the verb off the front of the words; a first word that is an option or key=value means train.
std::string take_verb(std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with("-") || words[0].find('=') != std::string::npos) return "train";
  const std::string verb = words[0];
  const bool known = std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
  if (!known && (verb.ends_with(".yaml") || verb.ends_with(".yml")))
    fail(Exit::usage, "command line: {} is not a verb; did you mean --config {}?", verb, verb);
  MP_REQUIRE(known, Exit::usage, "command line: {} is not a verb ({}){}", verb, join(verbs, ", "),
             did_you_mean(verb, verbs));
  words.erase(words.begin());
  return verb;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  a.argc = argc;
  a.argv = argv;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    MP_REQUIRE(
        !words.empty(), Exit::usage,
        "command line: nothing is asked for (mindpipe-train --config FILE trains, --help shows the rest)");
    a.answer = overview;
    return a;
  }
  a.verb = take_verb(words);

  CLI::App app(meaning_of(a.verb), "mindpipe-train " + a.verb);
  bool version = false, help_config = false;
  std::string walltime;
  app.add_flag("--version", version, "name this build, its libraries and this processor");
  app.add_flag("--help-config", help_config, "list every setting");
  if (a.verb == "data") declare_data(app, a);
  else if (a.verb == "doctor") declare_doctor(app, a);
  else declare_run(app, a, walltime);
  try {
    if (std::find(words.begin(), words.end(), "--version") != words.end())
      version = true;  // both answer alone, whatever else is there
    else if (std::find(words.begin(), words.end(), "--help-config") != words.end()) help_config = true;
    else app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    a.answer = chosen.empty() ? app.help() : chosen.front()->help("mindpipe-train data");
    return a;
  } catch (const CLI::ParseError& problem) {
    refuse(app, a.verb, problem.what(), app.remaining(true));
  }
  if (version) a.answer = version_text();
  if (help_config) a.answer = config_help();
  if (!a.answer.empty()) return a;

  for (const CLI::App* chosen : app.get_subcommands()) a.data.action = chosen->get_name();
  if (!walltime.empty()) a.overrides.push_back("run.max_walltime=" + walltime);
  const bool reads_config = a.verb != "data" && (a.verb != "doctor" || !a.tune.empty());
  MP_REQUIRE(!reads_config || !a.config.empty(), Exit::usage,
             "command line: --config FILE is missing ({} needs one; configs/ holds examples)",
             a.tune.empty() ? a.verb : "doctor --tune");
  MP_REQUIRE(a.verb != "doctor" || reads_config || (a.config.empty() && a.overrides.empty()), Exit::usage,
             "command line: a configuration is read only by doctor --tune TABLE; doctor alone examines this "
             "machine");
  for (const std::string& text : a.overrides)
    MP_REQUIRE(text.find('=') != std::string::npos, Exit::usage,
               "command line: {} is not key=value (like train.steps=20)", text);
  return a;
}

}  // namespace mindpipe
