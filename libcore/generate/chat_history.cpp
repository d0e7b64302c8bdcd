#include "libcore/generate/chat_history.h"

#include <utility>

namespace megalith {
namespace {

Json message(const char* role, const std::string& text) {
  return Json(Json::Object{{"role", role}, {"content", text}});
}

}  // namespace

ChatHistory::ChatHistory(const ChatTemplate& chat, ChatTokens tokens, Encode encode)
    : chat_(chat), tokens_(std::move(tokens)), encode_(std::move(encode)) {}

void ChatHistory::set_system(const std::string& text) {
  system_ = text;
}

void ChatHistory::ask(const std::string& question) {
  messages_.push_back(message("user", question));
}

void ChatHistory::answer(const std::string& text) {
  messages_.push_back(message("assistant", text));
}

void ChatHistory::take_back() {
  messages_.pop_back();
}

void ChatHistory::reset() {
  messages_.clear();
}

Prompt ChatHistory::rendered() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back(message("system", system_));
  for (const Json& one : messages_) all.push_back(one);
  std::string text = render_chat(chat_, all, tokens_);
  std::vector<int32_t> ids = encode_(text);
  return {.text = std::move(text), .ids = std::move(ids)};
}

bool ChatHistory::drop_oldest() {
  constexpr ptrdiff_t kTurn = 2;  // a question and its answer
  if (messages_.size() <= static_cast<size_t>(kTurn)) return false;
  messages_.erase(messages_.begin(), messages_.begin() + kTurn);
  return true;
}

ChatHistory::Fitted ChatHistory::prompt(int64_t limit) {
  const auto tokens = [](const Prompt& prompt) { return static_cast<int64_t>(prompt.ids.size()); };
  Fitted out{.prompt = rendered(), .dropped = 0};
  if (tokens(out.prompt) <= limit) return out;
  while (tokens(out.prompt) > limit / 4 * 3 && drop_oldest()) {
    out.prompt = rendered();
    ++out.dropped;
  }
  return out;
}

}  // namespace megalith
