#include "paper/known.h"

#include <fmt/format.h>

#include <cmath>

#include "paper/table.h"

namespace mindpipe {

/// Pairs of 64 queries and 100 keys have the engines of 100 padded rows, and half their workspace: their
/// queries fill one tile of 64, as 100 rows fill two.
const std::vector<KnownPlan>& known_plans() {
  static const AttentionForm gpt2{4, 12, 12, 1024, 1024, 64, true}, llama{1, 32, 8, 8192, 8192, 128, true},
      padded{2, 8, 8, 100, 100, 64, false, true}, cross{2, 8, 8, 64, 100, 64, false, true},
      whole{1, 6, 6, 197, 197, 64}, narrow{2, 4, 4, 64, 64, 16, true}, wide{2, 4, 4, 1024, 1024, 80, true},
      shared{2, 4, 2, 1000, 1000, 128, true}, widest{1, 8, 8, 1024, 1024, 256, true},
      width_4{2, 4, 4, 64, 64, 4, true};
  static const std::vector<KnownPlan> plans{
      {gpt2, false, "2", "1", 0, 0},
      {gpt2, true, "6", "7", 96.19, 96.19},
      {llama, false, "2", "1", 0, 0},
      {llama, true, "6", "7", 4225, 4225},
      {padded, false, "9", "8", 0, 0},
      {padded, true, "6", "7", 0.51, 0.51},
      {cross, false, "9", "8", 0, 0},
      {cross, true, "6", "7", 0.25, 0.25},
      {whole, false, "9", "8", 0, 0},
      {whole, true, "6", "7", 0.75, 0.75},
      {narrow, false, "2", "1", 0, 0},
      {narrow, true, "6", "7", 0.13, 0.06},
      {wide, true, "6", "7", 16.03, 16.03},
      {shared, true, "6", "7", 19.94, 19.94},
      {widest, true, "6", nullptr, 16.03, 0, "128"},
      {width_4, true, nullptr, nullptr, 0, 0, "multiple of 8"},
  };
  return plans;
}

PlannedAttention question_of(const KnownPlan& known) {
  PlannedAttention question(call_of(known.form), known.backward);
  question.padded = known.form.padded;
  return question;
}

std::string difference(const KnownPlan& known, const std::string& device, const AttentionAnswer& answer) {
  const bool is_hopper = device.starts_with("h");
  const char* engine = is_hopper ? known.hopper : known.ampere;
  const double mib = is_hopper ? known.hopper_mib : known.ampere_mib;
  if (engine == nullptr) {
    if (answer.is_planned) return fmt::format("it is planned ({}), and was refused", answer.engine);
    return answer.refusal.find(known.refusal) != std::string::npos
               ? ""
               : fmt::format("'{}' does not speak of '{}'", answer.refusal, known.refusal);
  }
  if (!answer.is_planned) return "it is refused: " + answer.refusal;
  if (engine_number(answer.engine) != engine)
    return fmt::format("engine {} and not {}", answer.engine, engine);
  const double bytes = static_cast<double>(answer.bytes) / 0x1p20;
  constexpr double rounded = 0.0051;  // what is known has two digits
  return std::abs(bytes - mib) < rounded ? "" : fmt::format("{:.2f} MiB and not {:.2f}", bytes, mib);
}

}  // namespace mindpipe
