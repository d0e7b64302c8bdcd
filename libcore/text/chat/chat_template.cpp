#include "libcore/text/chat/chat_template.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/text/chat/jinja.h"

namespace megalith {

struct ChatTemplate::Program {
  std::string name;
  std::vector<jinja::Node> nodes;
  std::string source;
};

namespace {

std::unique_ptr<ChatTemplate::Program> compile(const std::string& source, const std::string& name) {
  if (source.empty())
    fail(ErrorKind::kUsage, name.empty() ? "the model" : name,
         ": the model has no chat template (\"chat_template\" of tokenizer_config.json, or "
         "chat_template.jinja); "
         "give --prompt instead");
  return std::make_unique<ChatTemplate::Program>(
      ChatTemplate::Program{name, jinja::parse(source, name), source});
}

}  // namespace

ChatTemplate::ChatTemplate(const std::string& source, const std::string& name)
    : program_(compile(source, name)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const Json::Object& variables) const {
  return render_marked(variables).text;
}

ChatTemplate::Marked ChatTemplate::render_marked(const Json::Object& variables) const {
  jinja::Rendered out = jinja::render(program_->nodes, variables, program_->name);
  return {.text = std::move(out.text), .answers = std::move(out.generated)};
}

namespace {
bool holds_generation(const std::vector<jinja::Node>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const jinja::Node& node) {
    return node.kind == jinja::Node::kGroup ||
           std::any_of(node.bodies.begin(), node.bodies.end(), holds_generation);
  });
}
}  // namespace

bool ChatTemplate::marks_answers() const {
  return holds_generation(program_->nodes);
}

bool ChatTemplate::reads(std::string_view name) const {
  const auto is_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const std::string_view source = program_->source;
  for (size_t at = source.find(name); at != std::string_view::npos; at = source.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word(source[at - 1])) && (end == source.size() || !is_word(source[end]))) return true;
  }
  return false;
}

namespace {
Json message_of_transformers(const Json& message) {
  if (!message.is_object()) return message;
  Json::Object members;
  for (const auto& [name, value] : message.as_object())
    if (!value.is_null()) members.emplace_back(name, value);
  Json out(std::move(members));
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Json* const found = out.find(name);
    if (!found) continue;
    const Json reasoning = *found, thinking = out.find("thinking") ? out["thinking"] : reasoning;
    Json::Object& all = out.as_object();
    std::erase_if(all, [](const auto& one) { return one.first == "thinking"; });
    all.insert(all.begin(), {"thinking", thinking});  // as there, it comes first
    out.set("reasoning_content", reasoning);
    break;
  }
  return out;
}
}  // namespace

Json::Array messages_of_transformers(const Json::Array& messages) {
  Json::Array out;
  for (const Json& message : messages) out.push_back(message_of_transformers(message));
  return out;
}

std::string render_chat(const ChatTemplate& chat, const Json& messages, const ChatTokens& tokens) {
  const Json* list = messages.is_object() ? messages.find("messages") : &messages;
  if (list == nullptr || !list->is_array() || list->as_array().empty())
    fail(ErrorKind::kData, "--chat: wanted a list of messages, [{\"role\": …, \"content\": …}, …]");
  for (const Json& message : list->as_array()) {
    const Json* role = message.find("role");
    const bool says = message.find("content") != nullptr || message.find("tool_calls") != nullptr;
    if (role == nullptr || !role->is_string() || !says)
      fail(ErrorKind::kData, "--chat: found the message ", message.dump(),
           "; wanted an object with a text \"role\" and a \"content\", or \"tool_calls\"");
  }
  Json variables(Json::Object{{"messages", Json(messages_of_transformers(list->as_array()))}});
  if (messages.is_object())
    for (const auto& [name, value] : messages.as_object()) {
      if (name == "messages") continue;
      variables.set(name, value);
      if (!value.is_null() && !chat.reads(name))
        warn("--chat: the chat template reads no ", quote(name), ", which has no effect");
    }
  // What the file has takes the place of these. As in transformers, tools and documents are always defined.
  const Json::Object usual{{"bos_token", tokens.bos_token},
                           {"eos_token", tokens.eos_token},
                           {"add_generation_prompt", true},
                           {"tools", Json()},
                           {"documents", Json()}};
  for (const auto& [name, value] : usual)
    if (!variables.find(name)) variables.set(name, value);
  return chat.render(variables.as_object());
}

}  // namespace megalith
