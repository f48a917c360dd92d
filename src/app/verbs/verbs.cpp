#include "app/verbs/verbs.h"

#include <algorithm>
#include <charconv>

#include "app/verbs/options.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

const CLI::Validator plain_seed(
    [](const std::string& text) {
      if (std::string problem = refuse_unless_plain(text); !problem.empty()) return problem;
      std::uint64_t seed = 0;
      return std::from_chars(text.data(), text.data() + text.size(), seed).ec == std::errc{}
                 ? std::string()
                 : "'" + text + "' is not a seed (0 to 18446744073709551615)";
    },
    "");

void declare_train(CLI::App& app, Arguments& a) {
  declare_config(app, a);
  app.add_flag("--dry-run", a.dry_run,
               "check the settings, print layout and memory, train nothing; data is not opened");
  app.add_option_function<std::string>(
         "--max-walltime",
         [&a](const std::string& time) { a.overrides.push_back("run.max_walltime=" + time); },
         "short for run.max_walltime=TIME (23h50m)")
      ->option_text("TIME");
  app.add_option_function<std::vector<std::string>>(
         "--inject",
         [&a](const std::vector<std::string>& faults) {
           for (const std::string& fault : faults) a.injections.push_back(parse_injection(fault));
         },
         "let a fault happen, to see what becomes of it: KIND@RANK:STEP[:ARGUMENT], of kill, stop, exit, "
         "nan, inf, flip, slow (1.5 times as long, 1.5/7 in every seventh step, or 2s), "
         "lost-message, jitter, uneven, skew; slow-link@RANK-RANK:STEP:TIME; what lasts may end: "
         "slow@0:30-60:1.5")
      ->delimiter(',')
      ->allow_extra_args(false)  // settings may follow
      ->option_text("FAULT,...");
  app.add_option("--compare", a.compare,
                 "hold losses and weights against those of a run directory, bit for bit; runs of another "
                 "arithmetic are refused")
      ->option_text("RUN");
  declare_ranks(app, a);
  declare_foreign_profile(app, a);
}

void declare_arithmetic(CLI::App& app, Arguments& a) {
  declare_config(app, a);
  declare_ranks(app, a);
}

void declare_profile(CLI::App& app, Arguments& a) {
  declare_config(app, a);
  app.add_option("--output", a.profile.output, "the file for device.profile (profile.yaml)")
      ->option_text("FILE");
  app.add_option_function<std::string>(
         "--budget",
         [&a](const std::string& time) {
           const std::optional<double> seconds = parse_seconds(time);
           MP_REQUIRE(seconds && *seconds > 0, Exit::usage, "--budget: {} is no time (2m, 30s)", time);
           a.profile.budget = *seconds;
         },
         "about how long all measurements may take (2m)")
      ->option_text("TIME");
}

void declare_report(CLI::App& app, Arguments& a) {
  app.add_option("RUN", a.report.run, "the run directory")->required()->option_text("");
  app.add_option("--svg", a.report.svg, "draw the curve into this file too")->option_text("FILE");
}

void declare_replay(CLI::App& app, Arguments& a) {
  app.add_option("RUN", a.replay.run, "the run directory")->required()->option_text("");
  app.add_option(
         "--scale", a.replay.changes,
         "what if: SELECTOR=FACTOR, =+TIME, =ideal or =free, of rank:3, stage:1, kind:backward, link:0-1, "
         "between-nodes, axis:data, lag; one after the other, each alone")
      ->option_text("CHANGE...");
  app.add_option("key=value", a.replay.words,
                 "what if: other settings, all at once: another program with the prices of the trace; or "
                 "another run directory: what is different there")
      ->option_text("...");
}

void declare_doctor(CLI::App& app, Arguments& a) {
  app.add_option("--tune", a.tune,
                 "time the products of a configuration on a GPU and write the table for device.kernels")
      ->option_text("TABLE");
  app.add_option("--config", a.config, "--tune: the configuration, a YAML file")->option_text("FILE");
  app.add_option("key=value", a.overrides, "--tune: settings that override the file's")->option_text("...");
}

constexpr const char* tokenizer_meaning =
    "tokenizer.json, a folder of vocab.json and merges.txt, vocab.txt, FILE.tiktoken:PATTERN, a "
    "SentencePiece "
    "FILE.model, or bytes";

void declare_import(CLI::App& importer, ImportRequest& import) {
  ImportRules& rules = import.rules;
  importer.add_option("INPUT", import.inputs, "files and folders, plain, .gz or .zst")
      ->required()
      ->option_text("...");
  importer.add_option("--output", import.output, "write PREFIX.bin, PREFIX.idx and PREFIX.json")
      ->required()
      ->option_text("PREFIX");
  importer.add_option("--tokenizer", import.tokenizer, tokenizer_meaning)->option_text("PATH");
  importer
      .add_option(
          "--format", import.format,
          "text: a file is a document; paragraphs: one each; jsonl: one a line; pairs: a source, a tab and "
          "a target a line; tokens: of nanoGPT, llm.c or NumPy; auto: by the file's ending")
      ->check(CLI::IsMember({"auto", "text", "paragraphs", "jsonl", "pairs", "tokens"}))
      ->option_text("FORMAT");
  importer.add_flag_callback("--jsonl", [&] { import.format = "jsonl"; })
      ->description("short for --format jsonl");
  importer.add_option("--key", rules.key, "jsonl: the member that holds the text (text)")->option_text("KEY");
  importer.add_flag(
      "--answers", rules.answers,
      "jsonl: conversations (messages, or a prompt and an answer), of which answers alone count");
  importer
      .add_option_function<std::string>(
          "--template",
          [&](const std::string& name) {
            rules.chat_template = name;
            rules.answers = true;
          },
          "--answers: how conversations are written: chatml, llama3 or a JSON file")
      ->option_text("NAME");
  importer.add_option("--prompt", rules.prompt_key, "--answers: the member that holds a prompt (prompt)")
      ->option_text("KEY");
  importer.add_option("--answer", rules.answer_key, "--answers: the member that holds an answer (answer)")
      ->option_text("KEY");
  importer.add_flag("--end-of-text", rules.end_of_text,
                    "end every document in the tokenizer's end (bytes: 256)");
  importer.add_flag("--template-tokens", rules.template_tokens,
                    "put the tokenizer's own tokens around every document, as [CLS] and [SEP]");
  importer.add_flag("--special-tokens", rules.special_tokens,
                    "take the text of a special token in a document for the token, not for letters");
  importer
      .add_option("--threads", import.threads,
                  "threads that turn text into tokens (all processors, at most 16)")
      ->check(plain_integer())
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

void declare_train_tokenizer(CLI::App& trainer, TrainTokenizerRequest& request) {
  trainer.add_option("INPUT", request.inputs, "files and folders of text, also .gz and .zst")
      ->required()
      ->option_text("");
  trainer.add_option("--output", request.output, "write the tokenizer to this path")
      ->required()
      ->option_text("FILE.json");
  trainer.add_option("--vocabulary", request.rules.vocabulary, "tokens at most, 256 bytes among them")
      ->required()
      ->check(plain_integer())
      ->option_text("N");
  trainer.add_option("--special", request.rules.special, "special tokens, which have the first ids")
      ->option_text("TOKEN...");
  trainer
      .add_option("--least-count", request.rules.least_count,
                  "a pair that stands more rarely becomes no token (0)")
      ->check(plain_integer())
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60))
      ->option_text("N");
  trainer
      .add_option("--pattern", request.rules.pattern,
                  "what splits texts into words: gpt2, cl100k, o200k or llama3 (gpt2)")
      ->option_text("NAME");
  trainer
      .add_option("--format", request.format,
                  "text, paragraphs, jsonl or pairs; else each file's ending says so")
      ->option_text("FORMAT");
  trainer.add_option("--key", request.key, "jsonl: the member that holds the text (text)")
      ->option_text("KEY");
  trainer.add_option("--threads", request.threads, "threads that split texts (all processors)")
      ->check(plain_integer())
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

void declare_data(CLI::App& app, Arguments& a) {
  DataArguments& data = a.data;
  app.require_subcommand(1);
  declare_import(*app.add_subcommand("import", "turn texts, conversations or pairs into token files"),
                 data.import);
  declare_train_tokenizer(
      *app.add_subcommand("train-tokenizer", "make a byte-level tokenizer.json of the pairs in texts"),
      data.train_tokenizer);
  CLI::App* inspect = app.add_subcommand("inspect", "say what a token file or a text holds");
  inspect->add_option("PREFIX", data.input, "the path without .bin, or a .txt file")
      ->required()
      ->option_text("");
  inspect->add_option("--show", data.show, "print this many tokens as text (64)")
      ->check(plain_integer())
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->option_text("N");
  inspect
      ->add_option("--tokenizer", data.tokenizer, "write them by this tokenizer; else by that of PREFIX.json")
      ->option_text("PATH");
  CLI::App* encode = app.add_subcommand("encode", "lines of text to lines of ids, from stdin to stdout");
  CLI::App* decode = app.add_subcommand("decode", "lines of ids to lines of text, from stdin to stdout");
  for (CLI::App* sub : {encode, decode})
    sub->add_option("--tokenizer", data.tokenizer, tokenizer_meaning)->required()->option_text("PATH");
  encode->add_flag("--plain", data.plain, "the text of special tokens is letters");
  CLI::App* synthesize = app.add_subcommand("synthesize", "make a corpus from rules");
  synthesize->add_option("NAME", data.input, "arithmetic")->required()->option_text("");
  synthesize->add_option("--output", data.output, "write PREFIX.bin and PREFIX.idx, or a .txt file")
      ->required()
      ->option_text("PREFIX");
  synthesize->add_option("--documents", data.documents, "how many (1000)")
      ->check(plain_integer())
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("N");
  synthesize->add_option("--seed", data.seed, "seed of the corpus (1)")->check(plain_seed)->option_text("S");
}

void declare_how_to_export(CLI::App& app, Arguments& a) {
  app.add_option("key=value", a.overrides,
                 "export.part, export.precision, export.names in the place of the run's")
      ->option_text("...");
}

void declare_ckpt(CLI::App& app, Arguments& a) {
  CheckpointArguments& asked = a.checkpoint;
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* meaning, const char* word) {
    CLI::App* sub = app.add_subcommand(name, meaning);
    sub->add_option(word, asked.first)->required()->option_text("");
    return sub;
  };
  add("list", "the checkpoints of a run, the newest first", "RUN");
  add("info", "what a checkpoint, or the newest of a run, holds", "PATH");
  add("verify", "read every byte and compare it with its CRC; ranks share the work", "PATH");
  add("diff", "how two checkpoints differ, tensor by tensor; exit code 1 if they do", "A")
      ->add_option("B", asked.second)
      ->required()
      ->option_text("");
  CLI::App* sub =
      add("export",
          "write the weights as a run does at its end: FILE.safetensors, or a directory for transformers",
          "PATH");
  sub->add_option("--output", asked.output, "the file or directory to write")
      ->required()
      ->option_text("FILE");
  declare_how_to_export(*sub, a);
}

void declare_extract(CLI::App& app, Arguments& a) {
  ExtractArguments& asked = a.extract;
  app.add_option("RUN", asked.from, "the run directory of a supernet, or one of its checkpoints")
      ->required()
      ->option_text("");
  app.add_option("--choice", asked.choice,
                 "each block's candidate, from 0 (0,3,4), or a YAML file with a model.choice")
      ->required()
      ->option_text("NUMBERS|FILE");
  app.add_option("--output", asked.output, "write DIR/subnet.yaml, and the weights beside it as a run does")
      ->required()
      ->option_text("DIR");
  declare_how_to_export(app, a);
}

void declare_import(CLI::App& app, Arguments& a) {
  ImportArguments& asked = a.import_from;
  app.add_option("DIR", asked.from, "the directory of a model of Hugging Face's transformers")
      ->required()
      ->option_text("");
  app.add_option("--output", asked.output, "write this configuration")->required()->option_text("FILE.yaml");
}

const Verb verbs[] = {
    {.name = "train",
     .summary = "train a model, or go on with one (the verb when none is named)",
     .meaning = "Train a model, or go on with one.",
     .searches = true,
     .has_steps = true,
     .declare = declare_train,
     .run = train},
    {.name = "eval",
     .summary = "loss and accuracy of a trained model on data.validation",
     .meaning = "Loss, perplexity and accuracy of a trained model on data.validation: train.evaluate_batches "
                "batches, or all, once over it.",
     .declare = declare_config,
     .run = eval},
    {.name = "generate",
     .summary = "text from a trained model",
     .meaning = "Text from a trained model (generate.prompt=... generate.tokens=...).",
     .declare = declare_config,
     .run = generate},
    {.name = "search",
     .summary = "the best networks of a trained supernet",
     .meaning = "Score networks of a trained supernet on held-out batches, with its weights as they are, and "
                "write the best as configurations (search.*). A search that was stopped goes on.",
     .has_steps = true,
     .declare = declare_config,
     .run = search},
    {.name = "plan",
     .summary = "what every rank would do and hold; --simulate: how long a step takes; --search: the best",
     .meaning = "What every stage would do and hold, for any number of ranks, without training; with "
                "--simulate, how long a step takes; with --search, which layout takes the least.",
     .searches = true,
     .declare = declare_plan,
     .run = plan},
    {.name = "profile",
     .summary = "measure what blocks of a model take here, for plans",
     .meaning =
         "Measure what the blocks of a model take on the ranks of this job, all busy at once, and what "
         "messages take, and write a file that plans take their prices from (device.profile).",
     .searches = true,
     .declare = declare_profile,
     .run = profile},
    {.name = "arithmetic",
     .summary = "all that the bits of a training depend on, part by part, and its name",
     .meaning = "All that the bits of a training depend on, part by part, and the name of it all: equal "
                "names, equal bits.",
     .searches = true,
     .declare = declare_arithmetic,
     .run = arithmetic},
    {.name = "report",
     .summary = "the losses of a run, drawn in the terminal and as SVG",
     .meaning = "The losses of a run, drawn in the terminal and, with --svg, as a picture.",
     .reads_config = false,
     .declare = declare_report,
     .run = report},
    {.name = "replay",
     .summary = "run a training's last steps again on paper: who is slow, what it costs, what if",
     .meaning = "Run the last steps of a training again on paper, from its trace.safetensors: where a step "
                "goes, who "
                "is slow, what that costs, and what a step would take if something took longer or less.",
     .reads_config = false,
     .declare = declare_replay,
     .run = replay_run},
    {.name = "data",
     .summary = "import, inspect, encode or synthesize tokens",
     .meaning = "Import, inspect, encode, decode or synthesize tokens.",
     .reads_config = false,
     .declare = declare_data,
     .run = data},
    {.name = "ckpt",
     .summary = "list, describe, verify, compare or export checkpoints",
     .meaning = "List, describe, verify, compare or export checkpoints.",
     .reads_config = false,
     .declare = declare_ckpt,
     .run = ckpt},
    {.name = "extract",
     .summary = "a network out of a trained supernet, to evaluate or to train",
     .meaning =
         "A network out of a supernet, to evaluate or to train: its configuration, and its weights as the "
         "run left them (if it was cut off: its newest checkpoint), or as a checkpoint has them.",
     .reads_config = false,
     .declare = declare_extract,
     .run = extract},
    {.name = "import",
     .summary = "a configuration that trains the model of a directory of Hugging Face's",
     .meaning = "Write the configuration that a directory's config.json means: the same model, and the "
                "directory's weights to begin with (run.weights).",
     .reads_config = false,
     .declare = declare_import,
     .run = import_model},
    {.name = "doctor",
     .summary = "examine this machine and say what to do about it",
     .meaning = "Examine this machine and say what to do about it, or tune products for its GPU.",
     .reads_config = false,
     .declare = declare_doctor,
     .run = doctor},
};

}  // namespace

std::span<const Verb> all_verbs() { return verbs; }

const Verb& verb_named(const std::string& name) {
  const auto found =
      std::find_if(std::begin(verbs), std::end(verbs), [&](const Verb& verb) { return name == verb.name; });
  MP_CHECK(found != std::end(verbs), "no verb {}", name);
  return *found;
}

}  // namespace mindpipe
