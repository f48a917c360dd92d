#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "app/run/injection.h"
#include "core/kinds.h"
#include "corpus/import.h"
#include "corpus/train_tokenizer.h"

namespace mindpipe {

/// What `data` is asked to do.
struct DataArguments {
  std::string action;  ///< import | train-tokenizer | inspect | synthesize | encode | decode
  std::string input;   ///< inspect: a prefix or a text; synthesize: a corpus
  std::string output;  ///< synthesize: prefix of the .bin/.idx pair
  ImportRequest import;
  TrainTokenizerRequest train_tokenizer;
  bool plain = false;      ///< encode: special tokens in the text are letters
  std::string tokenizer;   ///< inspect, encode, decode
  std::int64_t show = 64;  ///< inspect: the first tokens, as text
  std::int64_t documents = 1000;
  std::uint64_t seed = 1;
};

/// What `ckpt` is asked to do.
struct CheckpointArguments {
  std::string action;         ///< list | info | verify | diff | export
  std::string first, second;  ///< a run directory or a checkpoint; diff: two of them
  std::string output;         ///< export: the file, or a directory
};

/// What `extract` is asked to do.
struct ExtractArguments {
  std::string from;    ///< the run directory of a supernet, or a checkpoint
  std::string choice;  ///< the numbers of a network's candidates, or a YAML file that names one
  std::string output;  ///< the directory to write to
};

/// What `import` is asked to do.
struct ImportArguments {
  std::string from;    ///< directory with the config.json and the weights of a model of transformers
  std::string output;  ///< YAML file to write
};

/// What `report` is asked to do.
struct ReportArguments {
  std::string run;  ///< the run directory
  std::string svg;  ///< the picture to write; empty: none
};

/// What `replay` is asked to do.
struct ReplayArguments {
  std::string run;                   ///< the run directory
  std::vector<std::string> changes;  ///< SELECTOR=FACTOR, see trace/what_if.h
  std::vector<std::string> words;    ///< key=value of another program, or another run directory
};

/// What `plan --search` is asked to do.
struct SearchArguments {
  bool search = false;
  int most_ranks = 0;  ///< numbers of ranks up to this one are compared; 0: one alone
  int top = 5;         ///< layouts that are listed
  int measure = 0;     ///< layouts whose steps are measured in this job
  std::string from;    ///< a run directory whose trace has the prices; empty: those of the configuration
  std::string output;  ///< the configuration with the best layout; empty: none
  std::string json;    ///< the file for figures; -: stdout, which has nothing else; empty: none
  std::string html;    ///< the page with pictures; empty: none
};

/// What `profile` is asked to do.
struct ProfileArguments {
  std::string output = "profile.yaml";
  double budget = 120;  ///< seconds
};

/// The command line, understood.
struct Arguments {
  std::string verb = "train";
  std::string config;                  ///< the file
  std::vector<std::string> overrides;  ///< key=value
  std::set<std::string> open;          ///< settings that file and overrides leave to a search: auto
  bool reads_config = true;            ///< the verb needs a configuration
  bool dry_run = false;                ///< say what would be done, allocate nothing
  bool print_config = false;           ///< print the resolved configuration
  bool simulate = false;               ///< plan: run the programs in virtual time
  bool foreign_profile = false;        ///< take a device.profile that another machine measured
  bool is_part = false;                ///< part of other work: the training prints no table of its own
  int ranks = 0;                       ///< plan and dry run: for this many ranks; 0: the grid's product
  std::vector<Injection> injections;   ///< faults to try
  std::string compare;                 ///< train: a run whose numbers have to come again; empty: none
  std::string tune;  ///< doctor: the file for a table of algorithms; empty: the machine is examined
  DataArguments data;
  CheckpointArguments checkpoint;
  ReportArguments report;
  ReplayArguments replay;
  ExtractArguments extract;
  SearchArguments layouts;
  ProfileArguments profile;
  ImportArguments import_from;
  std::string answer;  ///< what the command line asks for by itself (--help, --version); empty: there is work
  int argc = 0;        ///< main's arguments, for whoever starts the messages between ranks
  char** argv = nullptr;
};

/// Understands a command line, or fails with exit code 2 and a sentence.
Arguments parse_arguments(int argc, char** argv);

}  // namespace mindpipe
