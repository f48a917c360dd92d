#pragma once
#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mindpipe {

/// What the program knows of a kind that has no property but its name.
struct NamedRow {
  std::string_view name;
};

// A list names each kind of an enum once: its enumerator, its name, its properties. MINDPIPE_KINDS makes the
// enum and the table of its rows from the list; whatever reads or prints a kind follows from these.
#define MINDPIPE_ENUMERATOR(enumerator, ...) enumerator,
#define MINDPIPE_ROW(enumerator, ...) {__VA_ARGS__},
#define MINDPIPE_KINDS(Kind, Row, list)                         \
  enum class Kind : std::uint8_t { list(MINDPIPE_ENUMERATOR) }; \
  inline constexpr Row Kind##_rows[] = {list(MINDPIPE_ROW)};    \
  constexpr std::span<const Row> rows_of(Kind) { return Kind##_rows; }

/// An enum that MINDPIPE_KINDS made.
template <class Kind>
concept ListedKind = requires(Kind kind) {
  rows_of(kind).front().name;
};

/// The properties of a kind.
template <ListedKind Kind>
constexpr const auto& row_of(Kind kind) {
  return rows_of(kind)[static_cast<std::size_t>(kind)];
}
template <ListedKind Kind>
constexpr std::string_view name_of(Kind kind) {
  return row_of(kind).name;
}
/// The kind of that name; nothing when there is none.
template <ListedKind Kind>
constexpr std::optional<Kind> kind_named(std::string_view name) {
  const auto rows = rows_of(Kind{});
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name) return static_cast<Kind>(i);
  return std::nullopt;
}
/// All kinds of an enum, in the order of its list.
template <ListedKind Kind>
constexpr auto all_kinds() {
  std::array<Kind, rows_of(Kind{}).size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<Kind>(i);
  return kinds;
}

}  // namespace mindpipe

template <mindpipe::ListedKind Kind>
struct fmt::formatter<Kind> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(Kind kind, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", name_of(kind));
  }
};
