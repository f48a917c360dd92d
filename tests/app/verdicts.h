#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "app/verbs/main_verb.h"
#include "core/check.h"
#include "random_supernets.h"

namespace mindpipe {

/// How a command ends: with its exit code, and what it prints, or the sentence with which it refuses.
struct Verdict {
  int code = 0;
  std::string text;
};

/// The verdict of a command, in this process.
inline Verdict verdict_of(const Arguments& arguments) {
  Verdict verdict;
  testing::internal::CaptureStdout();
  try {
    verdict.code = run_verb(arguments);
    verdict.text = testing::internal::GetCapturedStdout();
  } catch (const Error& error) {
    testing::internal::GetCapturedStdout();
    verdict = {static_cast<int>(error.code), error.what()};
  }
  return verdict;
}

inline Verdict planned(const std::string& file, int ranks) {
  Arguments arguments;
  arguments.verb = "plan";
  arguments.config = file;
  arguments.ranks = ranks;
  return verdict_of(arguments);
}

inline Verdict tried_dry(const std::string& file, int ranks) {
  Arguments arguments;
  arguments.dry_run = true;
  arguments.config = file;
  arguments.ranks = ranks;
  return verdict_of(arguments);
}

struct PaperVerdicts {
  Verdict plan, dry;
};

/// What plan and dry run say of a supernet that is drawn, which is one verdict, and one sentence where they
/// refuse it.
inline PaperVerdicts verdicts_on_paper(const RandomSupernet& drawn, const std::string& file) {
  PaperVerdicts paper{planned(file, drawn.ranks()), tried_dry(file, drawn.ranks())};
  EXPECT_EQ(paper.dry.code, paper.plan.code) << drawn.name() << '\n' << paper.plan.text << paper.dry.text;
  if (paper.plan.code != 0) {
    EXPECT_EQ(paper.dry.text, paper.plan.text) << drawn.name();
  }
  return paper;
}

}  // namespace mindpipe
