#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// A chat template. Supports the part of Jinja that the templates of published models use, and renders as
/// transformers does (trim_blocks, lstrip_blocks). Blocks: for (several variables, if, else, break, continue;
/// loop.index, index0, first, last, length, revindex, revindex0, previtem, nextitem, depth, depth0),
/// if/elif/else, set (of a variable, of namespace.member, and a block), macro, generation, comments.
/// Expressions: literals (a tuple is a list), names, member and item access, slices, arithmetic, ~,
/// comparisons, in, and/or/not, x if c else y. Filters, methods and functions with their arguments are listed
/// in jinja_signatures.cpp. There are also the filters map, select, reject, selectattr and rejectattr, the
/// method format with "{}", and tests that compare (equalto, in, …). Anything else, including other
/// arguments, is kData with its name and line: a block when the template is read, an expression only where it
/// is evaluated. Letters outside ASCII can be made lower case but not upper case.
class ChatTemplate {
 public:
  /// `name` begins messages. kUsage if `source` is empty, which means that the model has no template.
  ChatTemplate(const std::string& source, const std::string& name);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  /// Renders the template with these variables. Throws kData if the template raises an exception (with its
  /// message) or applies an operation to a value that does not support it.
  std::string render(const Json::Object& variables) const;

  /// A rendered text, and where {% generation %} blocks begin and end in it, in bytes and in order.
  struct Marked {
    std::string text;
    std::vector<std::pair<size_t, size_t>> answers = {};
  };
  Marked render_marked(const Json::Object& variables) const;
  /// Whether the template has {% generation %} blocks.
  bool marks_answers() const;
  /// Whether `name`, that of a variable or member, occurs in the template's text as a whole word.
  bool reads(std::string_view name) const;

  struct Program;  // defined in chat_template.cpp

 private:
  std::unique_ptr<Program> program_;
};

/// Messages as transformers (5.24) gives them to a template: without members that are null. The first of
/// "reasoning_content", "thinking" and "reasoning" that a message has becomes its "reasoning_content", and,
/// if it has no "thinking", that too.
Json::Array messages_of_transformers(const Json::Array&);

struct ChatTokens {
  std::string bos_token, eos_token;
};
/// The prompt for the model's next answer to `messages`, [{"role": text, "content": text}, …], or an object
/// that holds this list as "messages", and more variables of the template: "tools", "enable_thinking". kData
/// if they are anything else.
std::string render_chat(const ChatTemplate&, const Json& messages, const ChatTokens&);

}  // namespace megalith
