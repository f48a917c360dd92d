#pragma once
#include <string>
#include <vector>

#include "paper/questions.h"

namespace mindpipe {

/// A plan as cuDNN 9.19 made it before the graphs here were written.
struct KnownPlan {
  AttentionForm form;
  bool backward;
  const char *hopper, *ampere;  ///< numbers of engines; none: refused
  double hopper_mib, ampere_mib;
  const char* refusal = "";  ///< some words of it
};

constexpr int known_version = 919;  ///< hundreds of cuDNN's version that the plans are known of
const std::vector<KnownPlan>& known_plans();
/// The question as it was asked: without lengths where samples are whole. Runs tell them more often.
PlannedAttention question_of(const KnownPlan& known);
/// How an answer of this device differs from what is known, or nothing.
std::string difference(const KnownPlan& known, const std::string& device, const AttentionAnswer& answer);

}  // namespace mindpipe
