#pragma once

#include <memory>
#include <string>

#include "libcore/base/json.h"

namespace megalith {

/// A chat template: the part of Jinja that published models' templates are written in, read strictly. Blocks:
/// for (loop.index, index0, first, last, length, revindex; unpacking no), if/elif/else, set (also
/// namespace.member), macro-free. Expressions: literals, names, member and item access with slices,
/// arithmetic, ~, comparisons, in, and/or/not, x if c else y, is (not)
/// defined/none/string/mapping/iterable/…, the filters trim, length, upper, lower, tojson, default, join,
/// first, last, string, list, items and replace, the methods strip, lstrip, rstrip, startswith, endswith,
/// upper, lower, title, split, replace, get and items, and the functions raise_exception, namespace and
/// range. Blocks are trimmed as transformers does (trim_blocks, lstrip_blocks). Everything else is kData,
/// named with its line.
class ChatTemplate {
 public:
  /// `name` begins messages. kUsage when `source` is empty: the model has no template.
  ChatTemplate(const std::string& source, const std::string& name);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  /// The text with these variables. kData with the template's own words when it raises an exception, and
  /// for operations that a value does not have.
  std::string render(const Json::Object& variables) const;

  struct Program;  // of chat_template.cpp

 private:
  std::unique_ptr<Program> program_;
};

struct ChatTokens {
  std::string bos_token, eos_token;
};
/// The prompt for the model's next answer to `messages`, [{"role": text, "content": text}, …] (or an object
/// with these as "messages"). kData when they are anything else.
std::string render_chat(const ChatTemplate&, const Json& messages, const ChatTokens&);

}  // namespace megalith
