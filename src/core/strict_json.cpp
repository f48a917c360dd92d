#include "core/strict_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/mapped_file.h"
#include "core/text.h"

namespace mindpipe {
namespace {

using Json = nlohmann::json;

// What values take in memory, with what the allocator adds.
constexpr std::int64_t element = 24, list = 64, object = 64, text_object = 48, member = 112;
constexpr std::size_t fits_in_place = 15;  // bytes of a text that need no memory of their own

/// Builds a value from the events of a parser, in one pass over the text. The library's parser with a
/// callback searches the whole parent at each end of an object.
class Builder {
 public:
  explicit Builder(const JsonText& text) : text_(text) {}
  Json take() { return std::move(root_); }

  // Events of the library's parser: each answers whether to go on.
  bool null() { return add(Json()) != nullptr; }
  bool boolean(bool value) { return add(Json(value)) != nullptr; }
  bool number_integer(Json::number_integer_t value) { return add(Json(value)) != nullptr; }
  bool number_unsigned(Json::number_unsigned_t value) { return add(Json(value)) != nullptr; }
  bool number_float(Json::number_float_t value, const std::string&) { return add(Json(value)) != nullptr; }
  bool string(std::string& value) {
    count(text_object + bytes_beyond(value));
    return add(Json(std::move(value))) != nullptr;
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json(Json::value_t::object), object); }
  bool start_array(std::size_t) { return open(Json(Json::value_t::array), list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    count(member + bytes_beyond(name));
    const auto [place, is_new] = open_.back()->get_ref<Json::object_t&>().emplace(name, Json());
    MP_REQUIRE(is_new, text_.code, "{}: {} has the key '{}' twice", text_.path, text_.part, name);
    member_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) {
    if (dynamic_cast<const Json::parse_error*>(&error) == nullptr)
      fail(text_.code, "{}: {} has a number that no type holds (expected {})", text_.path, text_.part,
           text_.expected);
    fail(text_.code, "{}: {} is not JSON at byte {} of the file (expected {})", text_.path, text_.part,
         text_.begins + byte, text_.expected);
  }

 private:
  static std::int64_t bytes_beyond(const std::string& value) {
    return value.size() > fits_in_place ? static_cast<std::int64_t>(value.size()) + 32 : 0;
  }
  void count(std::int64_t bytes) {
    memory_ += bytes;
    MP_REQUIRE(memory_ <= text_.most_memory, text_.code,
               "{}: {} has more values than {} of memory hold"
               " (expected {})",
               text_.path, text_.part, human_bytes(static_cast<double>(text_.most_memory)), text_.expected);
  }
  Json* add(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) {
      *member_ = std::move(value);
      return member_;
    }
    count(element);
    auto& elements = parent.get_ref<Json::array_t&>();
    elements.push_back(std::move(value));
    return &elements.back();
  }
  bool open(Json&& value, std::int64_t bytes) {
    MP_REQUIRE(std::ssize(open_) <= text_.deepest, text_.code, "{}: {} is nested deeper than {}", text_.path,
               text_.part, text_.expected);
    count(bytes);
    open_.push_back(add(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonText& text_;
  Json root_;
  std::vector<Json*> open_;  ///< objects and lists whose end has not come, each within the one before
  Json* member_ = nullptr;   ///< value of the last key
  std::int64_t memory_ = 0;
};

}  // namespace

Json parse_json(std::string_view json, const JsonText& text) {
  Builder builder(text);
  Json::sax_parse(json.begin(), json.end(), &builder);
  return builder.take();
}

Json read_json_file(const JsonText& text) {
  const MappedFile file(text.path);
  MP_REQUIRE(file.size() <= text.largest, text.code, "{}: is {} long (expected {}, of {} at most)", text.path,
             human_bytes(static_cast<double>(file.size())), text.expected,
             human_bytes(static_cast<double>(text.largest)));
  return parse_json({reinterpret_cast<const char*>(file.data()), static_cast<std::size_t>(file.size())},
                    text);
}

}  // namespace mindpipe
