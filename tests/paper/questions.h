#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "plans/attention_planner.h"

namespace mindpipe {

/// An attention to be asked for, and which runs would ask it.
struct PaperQuestion {
  std::string from;      ///< "gpt2-124m tensor 2 micro-batch 4", or "odd"
  bool is_asked = true;  ///< by runs (is_planned)
  PlannedAttention question;
  std::string withheld;  ///< why no run of this configuration asks it, although its shape could be planned
};

/// Attention of packed heads as the layers have it: self-attention where there are as many queries as keys.
struct AttentionForm {
  std::int64_t samples = 1, query_heads = 4, key_heads = 4, queries = 128, keys = 128, width = 64;
  bool causal = false, padded = false;
};
AttentionCall call_of(const AttentionForm& form);
PaperQuestion question_of(const AttentionForm& form, bool backward, const std::string& from);

/// Every bundled configuration that asks a library for attention, whichever model, and the others, by name,
/// A bundled configuration with these settings.
Config read_bundled(const std::string& name, const std::vector<std::string>& settings = {});
/// with why they ask nothing.
std::vector<std::string> bundled_configurations();
std::map<std::string, std::string> configurations_without_questions();
/// What a configuration asks in all degrees and micro-batches that it allows.
std::vector<PaperQuestion> questions_of_configuration(const std::string& name);
/// The questions of a configuration as its file is, with these settings.
std::vector<PaperQuestion> questions_of_file(const std::string& name, std::vector<std::string> settings = {});
/// Narrow and wide heads, unequal lengths, padding, shared keys, half tiles.
std::vector<PaperQuestion> odd_questions();
/// Questions that a GPU is asked: those of every bundled configuration as its file is, and some odd ones.
std::vector<PaperQuestion> questions_of_a_check();

}  // namespace mindpipe
