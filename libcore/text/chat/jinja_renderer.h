#pragma once

#include <optional>

#include "libcore/text/chat/jinja.h"
#include "libcore/text/chat/jinja_value.h"

namespace megalith::jinja {

/// Renders a template once. Throws kData, with the template's name and the line, for anything unsupported.
class Renderer {
 public:
  Renderer(const Json::Object& variables, const std::string& name) : name_(name) {
    scopes_.emplace_back();
    for (const auto& [key, value] : variables) keep(scopes_.back()[key], value, 1);
  }
  Rendered run(const std::vector<Node>& nodes) {
    execute(nodes);
    return {std::move(out_), std::move(generated_)};
  }

 private:
  using Scope = std::map<std::string, Value>;
  enum class Flow { kOn, kBreak, kContinue };
  [[noreturn]] void refuse(int line, const std::string& what) const;
  const std::string& text_of(const Value& value, int line, const std::string& what) const;
  int64_t integer_of(const Value& value, int line, const std::string& what) const;
  [[noreturn]] void refuse_size(int line) const;
  /// About how many bytes a value takes. Refuses a value larger than any prompt needs. nullptr, for a
  /// namespace or an undefined value, counts as 0 bytes: the members of a namespace were counted when they
  /// were set.
  size_t measure(const Json* json, int line) const;
  /// Counts a step that copied or produced `bytes` bytes. Refuses a template that does not end.
  void count_step(int line, size_t bytes = 0);
  /// Counts `bytes` more bytes that variables and open blocks hold. Refuses a template that keeps too many.
  void count_kept(size_t bytes, int line);
  /// Sets a variable. From now on the bytes of its new value count, and those of its old value do not.
  void keep(Value& place, Value value, int line);
  void close_scope(int line);

  // Blocks (jinja_render.cpp).
  Flow execute(const std::vector<Node>& nodes);
  Flow execute(const Node& node);
  void set(const Node& node, Value value);
  /// Renders a {% generation %} block and notes where its text lies.
  Flow generate(const Node& node);
  Flow capture(const Node& node);
  /// The text of a macro with the arguments of a call.
  Value call_macro(const Expr& expr);
  Flow choose(const Node& node);
  void bind(const Node& node, const Json& entry);
  /// The elements that the loop iterates over, without those that its condition excludes.
  Json::Array loop_entries(const Node& node);
  Flow loop(const Node& node);

  // Values (jinja_eval.cpp).
  Value look_up(const std::string& name) const;
  std::string printed(const Value& value, int line) const;
  /// The elements that a loop over `value` iterates over.
  Json::Array entries(const Value& value, int line);
  /// Counts an operation that visits a text character by character, so that a template cannot run forever.
  void count_characters(const Json& text, int line);
  std::vector<uint32_t> begins_of(const Json& text, int line);
  /// Which one is tried first: value.key tries the attribute, value["key"] the member.
  enum class Access { kAttribute, kMember };
  Value member(const Value& value, const std::string& key, Access access, int line) const;
  Value item(const Value& value, const Value& index, int line);
  /// A list, or a text as a sequence of characters. The beginnings of the characters are found only once, so
  /// that each access takes constant time. Refers to the value from which it was created.
  struct Sequence {
    std::string_view character(int64_t at) const {
      const auto i = static_cast<size_t>(at);
      return std::string_view(json.as_string()).substr(begins[i], begins[i + 1] - begins[i]);
    }
    const Json& json;
    std::vector<uint32_t> begins;  // beginnings of the characters; for a text only
    int64_t size;
  };
  Sequence sequence_of(const Value& value, int line, const char* what);
  struct Places {
    int64_t begin, end, step;
  };
  Places places_of(const Expr& slice, int64_t size);
  /// A slice, as in Python.
  Value slice(const Expr& expr);
  /// The value of `expr`. Refuses one that is too large, so that the cost of any operation on a value is
  /// bounded.
  Value eval(const Expr& expr);
  Value value_of(const Expr& expr);
  Json json(const Expr& expr);
  Json add_to(size_t& bytes, Json value, int line) const;
  Value collection(const Expr& expr);
  Value negative(const Expr& expr);
  bool contains(const Value& all, const Value& one, int line);
  bool comparison(const Expr& expr);
  bool is_less(const std::string& sign, const Value& left, const Value& right, int line) const;
  bool holds(const std::string& sign, const Value& left, const Value& right, int line);
  Value binary(const Expr& expr);
  [[noreturn]] void refuse_operands(const std::string& sign, const Value& left, const Value& right,
                                    int line) const;
  Value arithmetic(const Expr& expr, const Json& x, const Json& y) const;
  /// As Python's text * times.
  Value repeated(const std::string& text, int64_t times, int line) const;

  // Filters, tests, methods and functions (jinja_calls.cpp). argument(), text_argument() and
  // integer_argument() return child `i` of a call (see arrange_arguments), or nothing if that argument is not
  // given; the last two treat None as not given. flag_argument(): whether it is given and true.
  std::optional<Value> argument(const Expr& expr, size_t i);
  std::optional<std::string> text_argument(const Expr& expr, size_t i);
  std::optional<int64_t> integer_argument(const Expr& expr, size_t i);
  bool flag_argument(const Expr& expr, size_t i);
  Value filter(const Expr& expr);
  Value default_of(const Expr& expr, const Value& value);
  Value to_json(const Expr& expr, const Value& value);
  std::optional<Json> number_in(const std::string& given, int line) const;
  Value to_integer(const Expr& expr, const Value& value);
  Value end_of(const Expr& expr, const Value& value);
  int64_t length(const Value& value, int line);
  Value items(const Value& value, int line) const;
  Value join(const Json::Array& all, const std::string& separator, int line) const;
  /// The operations on texts that are both filters and methods.
  Value text_operation(const Expr& expr, const Json& value);
  Value replace_text(const Expr& expr, const std::string& text);
  bool test(const Expr& expr);
  /// Whether `value` passes the test; `argument` is the test's own operand, if it has one.
  bool passes(const std::string& test, const Value& value, const std::optional<Value>& argument, int line);
  Value indented(const Expr& expr, const Value& value);
  /// Python's str() of a list or mapping.
  std::string represented(const Json& value, int line) const;
  Value formatted(const Expr& expr, const std::string& text);
  Value searched(const Expr& expr, const std::string& text, const std::string& part);
  Value split_otherwise(const Expr& expr, const std::string& text);
  const Json::Object& object_of(const Value& value, int line, const std::string& what) const;
  Value method(const Expr& expr);
  Value text_method(const Expr& expr, const Json& value);
  Value call(const Expr& expr);
  Value now(const Expr& expr, const std::string& format) const;
  Value range(const Expr& expr);

  // Filters of whole lists (jinja_lists.cpp).
  /// map, select, reject, selectattr and rejectattr.
  Value selection(const Expr& expr, const Value& value);
  Value mapped(const Expr& expr, const Json::Array& all);
  /// One element after the filter that `map` names.
  Value filtered(const Expr& expr, const Json& entry);
  Value attribute(const Json& entry, const std::string& path, int line) const;
  struct SortRule {
    std::string attribute = {};  // the member of each element that is compared; empty: the element
    bool case_sensitive = false;
    bool descending = false;
  };
  Value sort_key(const Json& entry, const SortRule& rule, int line) const;
  Json::Array sorted(Json::Array all, const SortRule& rule, int line);
  Value sort(const Expr& expr, const Value& value);
  Value dictsort(const Expr& expr, const Value& value);
  Value unique(const Expr& expr, const Value& value);
  /// The filters min and max.
  Value extreme(const Expr& expr, const Value& value);
  Value reversed(const Value& value, int line);

  const std::string& name_;
  std::vector<Scope> scopes_;
  std::string out_;
  int macros_ = 0;  // macros that run now, one inside another
  std::vector<std::pair<size_t, size_t>> generated_;
  int captures_ = 0;  // open blocks whose text is not output yet
  size_t steps_ = 0, kept_ = 0;
};

}  // namespace megalith::jinja
