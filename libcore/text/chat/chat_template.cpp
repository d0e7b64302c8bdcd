#include "libcore/text/chat/chat_template.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/text/chat/jinja.h"

namespace megalith {

struct ChatTemplate::Program {
  std::string name;
  std::vector<jinja::Node> nodes;
};

namespace {

std::unique_ptr<ChatTemplate::Program> compile(const std::string& source, const std::string& name) {
  if (source.empty())
    fail(ErrorKind::kUsage, name.empty() ? "the model" : name,
         ": the model has no chat template (\"chat_template\" of tokenizer_config.json, or "
         "chat_template.jinja); "
         "give --prompt instead");
  return std::make_unique<ChatTemplate::Program>(ChatTemplate::Program{name, jinja::parse(source, name)});
}

}  // namespace

ChatTemplate::ChatTemplate(const std::string& source, const std::string& name)
    : program_(compile(source, name)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const Json::Object& variables) const {
  return jinja::render(program_->nodes, variables, program_->name);
}

std::string render_chat(const ChatTemplate& chat, const Json& messages, const ChatTokens& tokens) {
  const Json* list = messages.is_object() ? messages.find("messages") : &messages;
  if (list == nullptr || !list->is_array() || list->as_array().empty())
    fail(ErrorKind::kData, "--chat: wanted a list of messages, [{\"role\": …, \"content\": …}, …]");
  for (const Json& message : list->as_array()) {
    const Json* role = message.find("role");
    if (role == nullptr || !role->is_string() || message.find("content") == nullptr)
      fail(ErrorKind::kData, "--chat: found the message ", message.dump(),
           "; wanted an object with a text \"role\" and a \"content\"");
  }
  return chat.render({{"messages", *list},
                      {"bos_token", tokens.bos_token},
                      {"eos_token", tokens.eos_token},
                      {"add_generation_prompt", true}});
}

}  // namespace megalith
