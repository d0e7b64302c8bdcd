#include "libcore/finetune/chat_segments.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Renders messages with a template and the tokens that it names. Error messages begin with `where`.
struct Renderer {
  const ChatTemplate& chat;
  const ChatTokens& tokens;
  const std::string& where;

  std::string operator()(Json::Array messages, bool prompt) const try {
    return chat.render({{"messages", Json(std::move(messages))},
                        {"bos_token", tokens.bos_token},
                        {"eos_token", tokens.eos_token},
                        {"add_generation_prompt", prompt}});
  } catch (const Error& error) {
    fail(error.kind(), where, ": ", error.what());
  }
};

/// Appends the part of `whole` after `done` as a segment, and sets `done` to `whole`.
void append(std::vector<Segment>& out, std::string& done, const std::string& whole, bool answer,
            const std::string& where) {
  if (!whole.starts_with(done))
    fail(ErrorKind::kData, where,
         ": the chat template changes earlier messages when one is added, so that no answer can be told "
         "apart; give another --chat-template");
  if (whole.size() > done.size()) out.push_back({whole.substr(done.size()), answer});
  done = whole;
}

}  // namespace

std::vector<Segment> chat_segments(const ChatTemplate& chat, const ChatTokens& tokens,
                                   const Json::Array& messages, const std::string& where) {
  const Renderer rendered{chat, tokens, where};
  std::vector<Segment> out;
  std::string done;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i]["role"] != Json("assistant")) continue;
    const auto end = messages.begin() + static_cast<std::ptrdiff_t>(i);
    append(out, done, rendered({messages.begin(), end}, true), false, where);
    append(out, done, rendered({messages.begin(), end + 1}, false), true, where);
  }
  return out;
}

}  // namespace megalith
