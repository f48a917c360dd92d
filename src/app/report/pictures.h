#pragma once
#include <string>
#include <utility>
#include <vector>

#include "program/action.h"
#include "program/clock/simulate.h"

/// What the pages of plans and replays draw with.
namespace mindpipe::pictures {

inline constexpr double page_width = 960, page_left = 72, page_right = 24, page_top = 56;

/// What a picture begins with, its title on it.
std::string opening(const std::string& title, double height);
std::string text_at(double x, double y, const std::string& text, const char* anchor = "start");
std::string box(const char* kind, double x, double y, double w, double h);
/// Colours with their words, from left to right.
std::string legend(const std::vector<std::pair<std::string, std::string>>& entries, double y);
/// The colours of a step's actions.
std::string legend_of_steps(double y);
/// A name for what an action of a step is drawn as; none: it is not drawn.
const char* class_of_action(const Action& action);

/// One row of a step: neighbours of one kind that a pixel does not part are drawn as one.
class Row {
 public:
  Row(double y, double height, double pixels_each) : y_(y), height_(height), each_(pixels_each) {}
  void add(const char* kind, const Span& span);
  std::string text();

 private:
  void close();

  double y_, height_, each_;
  const char* kind_ = nullptr;
  double begin_ = 0, end_ = 0;
  std::string text_;
};

/// Sentences as a list; none: nothing.
std::string list_of(const std::vector<std::string>& sentences);

/// A page, whole in itself: its title and a line of code; and its end, with a text as it is.
std::string page_opening(const std::string& title, const std::string& code);
std::string page_closing(const std::string& text);

}  // namespace mindpipe::pictures
