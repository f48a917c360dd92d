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
  double seconds = 0;
};

/// Asks every question for every described GPU, or those of `devices`, and hands each answer on at once;
/// without the library none, and the reason in `why_not`. What is withheld from the library is not asked.
std::vector<TableRow> ask_all(const std::vector<PaperQuestion>& questions,
                              const std::set<std::string>& devices,
                              const std::function<void(const TableRow&)>& answered, std::string& why_not);
std::string table_json(const std::vector<TableRow>& rows, int version);
std::string table_head(int version);
std::string row_text(const TableRow& row);
/// A line for each device: how many questions have a plan.
std::string counts_text(const std::vector<TableRow>& rows);
/// What a backward over one long sequence takes in memory and time, done in each of three ways.
std::string price_text(const std::string& device, const AttentionForm& form);
/// "6" of "eng6_k24=26"
std::string engine_number(const std::string& engine);

}  // namespace mindpipe
