#pragma once
#include <functional>
#include <string>
#include <vector>

#include "paper/questions.h"

namespace mindpipe {

/// A question's answer on one device.
struct TableRow {
  std::string device;
  PaperQuestion asked;
  AttentionAnswer answer;
  double seconds = 0;         ///< seconds that the plan took when it was made
  bool asked_before = false;  ///< for another configuration; then nothing was planned for this row
};
/// What a run's ledger holds for the plan: with the lengths in front of it.
std::size_t workspace_of(const TableRow& row);

/// What a backward takes on one device in memory and time, done in one way.
struct PlanPrice {
  std::string device, question, way;
  double bytes = 0, seconds = 0;
};
/// The ways that the device has: one plan, pieces, the ordered path where cuDNN would have it, our own.
std::vector<PlanPrice> prices_of(const std::string& device, const AttentionForm& form);
std::string price_text(const std::vector<PlanPrice>& prices);

/// Asks a planner every question of one device, and hands each answer on at once. What is withheld from the
/// library is not asked.
std::vector<TableRow> ask_all(const std::string& device, AttentionPlanner& planner,
                              const std::vector<PaperQuestion>& questions,
                              const std::function<void(const TableRow&)>& answered);
std::string table_json(const std::vector<TableRow>& rows, const std::vector<PlanPrice>& prices, int version);
std::string table_head(int version);
std::string row_text(const TableRow& row);
/// A line for each device: how many questions have a plan.
std::string counts_text(const std::vector<TableRow>& rows);
/// "6" of "eng6_k24=26"
std::string engine_number(const std::string& engine);

}  // namespace mindpipe
