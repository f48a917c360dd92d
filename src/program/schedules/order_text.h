#pragma once
#include <optional>
#include <string>

#include "program/clock/prices.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// A name for all that a search of orders reads: equal names, equal orders.
std::string question_of_search(const Outline& outline, const PriceList& prices);

/// An order as lines that people read: the question that it answers, then a stage a line, each pass by its
/// kind's letter, chunk and micro-batch ("F0.3").
std::string text_of_order(const Order& order, const std::string& question);

/// Refuses the order of a file, and says how to get another.
[[noreturn]] void refuse_order(const std::string& path, const std::string& finding);

/// The order of such a text; none where it answers another question. Refuses a text that is none, and passes
/// that are missing, come twice or lie on another stage; whether it may run is the checker's to say. `path`:
/// what sentences call it.
std::optional<Order> order_of_text(const std::string& text, const std::string& question,
                                   const OrderRequest& request, const std::string& path);

}  // namespace mindpipe
