#include "libcore/finetune/chat_segments.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

bool is_answer(const Json& message) {
  return message["role"] == Json("assistant");
}

/// The length of the common beginning of two texts.
size_t common_beginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// The length of `text` without a mark that is cut off at its end, such as "<|end".
size_t without_cut_mark(std::string_view text) {
  const size_t open = text.find_last_of("<[");
  if (open == std::string_view::npos || text.find_first_of(">]", open) != std::string_view::npos)
    return text.size();
  return open;
}

/// The reasoning at the beginning of an answer, up to the text behind it; empty if it has none. Templates
/// look for its end.
std::string_view reasoning_of(std::string_view content) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = content.rfind(kEnd);
  if (end == std::string_view::npos) return {};
  return content.substr(0, content.find_first_not_of('\n', end + kEnd.size()));
}

class Cutter {
 public:
  Cutter(const ChatTemplate& chat, const ChatTokens& tokens, const Conversation& conversation,
         const std::string& where)
      : chat_(chat),
        tokens_(tokens),
        conversation_(conversation),
        messages_(conversation.messages),
        where_(where) {
    check_members();
    // A developer's message is the system's, unless the template knows this role itself.
    if (!chat.reads("developer"))
      for (Json& message : messages_)
        if (message["role"] == Json("developer")) message.set("role", "system");
  }

  std::vector<Segment> run() const {
    if (chat_.marks_answers()) return marked();
    std::vector<Segment> out;
    std::string done;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!is_answer(messages_[i])) continue;
      const std::string prompt = render(i, true), whole = render(i + 1, false);
      if (!prompt.starts_with(done) || !whole.starts_with(prompt)) return located();
      append(out, prompt.substr(done.size()), false);
      append(out, whole.substr(prompt.size()), conversation_.learned[i]);
      done = whole;
    }
    return out;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": ", parts...);
  }

  /// Refuses what the template would leave out.
  void check_members() const {
    if (!conversation_.tools.is_null() && !chat_.reads("tools"))
      refuse("the chat template reads no \"tools\"; leave them out, or give another --chat-template");
    for (const auto& [name, value] : conversation_.variables)
      if (!chat_.reads(name))
        refuse("the chat template reads no ", quote(name), " of \"chat_template_kwargs\"; leave it out, or ",
               "give another --chat-template");
    for (const Json& message : messages_)
      for (const char* name : {"tool_calls", "reasoning_content", "thinking"})
        if (const Json* value = message.find(name); value && !value->is_null() && !chat_.reads(name))
          refuse("the chat template reads no ", quote(name),
                 " of a message; leave it out, or give another --chat-template");
  }

  ChatTemplate::Marked render(const Json::Array& messages, bool prompt) const try {
    Json::Object variables{{"messages", Json(messages_of_transformers(messages))},
                           {"bos_token", tokens_.bos_token},
                           {"eos_token", tokens_.eos_token},
                           {"add_generation_prompt", prompt}};
    variables.emplace_back("tools", conversation_.tools);  // null, but defined, as in transformers
    for (const auto& [name, value] : conversation_.variables) variables.emplace_back(name, value);
    return chat_.render_marked(variables);
  } catch (const Error& error) {
    fail(error.kind(), where_, ": ", error.what());
  }
  /// The first messages.
  std::string render(size_t count, bool prompt) const {
    const auto begin = messages_.begin();
    return render(Json::Array(begin, begin + static_cast<std::ptrdiff_t>(count)), prompt).text;
  }

  static void append(std::vector<Segment>& out, std::string text, bool answer) {
    if (!text.empty()) out.push_back({std::move(text), answer});
  }

  std::vector<Segment> marked() const {
    const ChatTemplate::Marked whole = render(messages_, false);
    std::vector<bool> learned;
    for (size_t i = 0; i < messages_.size(); ++i)
      if (is_answer(messages_[i])) learned.push_back(conversation_.learned[i]);
    if (learned.size() != whole.answers.size()) {
      if (std::find(learned.begin(), learned.end(), false) != learned.end())
        refuse("the chat template marks ", whole.answers.size(), " answers of ", learned.size(),
               ", so that it is not known which has the weight 0; give another --chat-template");
      learned.assign(whole.answers.size(), true);
    }
    std::vector<Segment> out;
    size_t done = 0;
    for (size_t i = 0; i < whole.answers.size(); ++i) {
      const auto [begin, end] = whole.answers[i];
      append(out, whole.text.substr(done, begin - done), false);
      append(out, whole.text.substr(begin, end - begin), learned[i]);
      done = end;
    }
    append(out, whole.text.substr(done), false);
    return out;
  }

  /// Finds the answers in the whole conversation, for a template that renders a message differently once
  /// others follow it. Those that drop the reasoning of earlier answers do so.
  std::vector<Segment> located() const {
    size_t count = messages_.size();
    while (count > 0 && !is_answer(messages_[count - 1])) --count;
    const std::string whole = render(count, false);
    std::vector<Segment> out;
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_answer(messages_[i])) continue;
      const auto [begin, end] = answer_in(whole, count, i, done);
      append(out, whole.substr(done, begin - done), false);
      append(out, whole.substr(begin, end - begin), conversation_.learned[i]);
      done = end;
    }
    return out;
  }

  /// Where answer `i` begins and ends in `whole`, the text of the first `count` messages.
  std::pair<size_t, size_t> answer_in(const std::string& whole, size_t count, size_t i, size_t done) const {
    const auto [begin, end] = content_in(whole, count, i);
    if (begin < done) refuse_turn(i);
    const std::string header = header_of(i);
    const size_t last = begin - done < header.size()
                            ? std::string::npos
                            : std::string_view(whole).substr(done, begin - done).rfind(header);
    if (header.empty() || last == std::string::npos) refuse_turn(i);
    return {done + last + header.size(), end + tail_size(whole.substr(end), i)};
  }

  /// Where the template puts the content of message `i`, but for its reasoning: the part that differs if the
  /// content does.
  std::pair<size_t, size_t> content_in(const std::string& whole, size_t count, size_t i) const {
    constexpr const char* kOther = "\x01";
    Json::Array messages(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
    const Json& content = messages[i]["content"];
    const std::string reasoning(content.is_string() ? reasoning_of(content.as_string()) : std::string_view());
    messages[i].set("content", reasoning + kOther);
    const std::string other = render(messages, false).text;
    const size_t begin = common_beginning(whole, other);
    if (begin >= other.size() || other[begin] != kOther[0]) refuse_turn(i);
    const size_t rest = other.size() - begin - 1;
    if (rest > whole.size() - begin || whole.substr(whole.size() - rest) != other.substr(begin + 1))
      refuse_turn(i);
    return {begin, whole.size() - rest};
  }

  /// What the prompt for answer `i` adds, up to where it opens the reasoning.
  std::string header_of(size_t i) const {
    const std::string before = render(i, false), prompt = render(i, true);
    const std::string header = prompt.substr(common_beginning(before, prompt));
    return header.substr(0, header.find("<think>"));
  }

  /// The length of the end mark of answer `i` at the beginning of `rest`.
  size_t tail_size(const std::string& rest, size_t i) const {
    const std::string alone = render(i + 1, false);
    const std::string tail = alone.substr(content_in(alone, i + 1, i).second);
    const size_t common = common_beginning(tail, rest);
    return common == tail.size() ? common : without_cut_mark(std::string_view(tail).substr(0, common));
  }

  [[noreturn]] void refuse_turn(size_t i) const {
    refuse("the chat template changes message ", i + 1, " of ", messages_.size(),
           " when others follow it, so that its answer cannot be told apart; give another --chat-template");
  }

  const ChatTemplate& chat_;
  const ChatTokens& tokens_;
  const Conversation& conversation_;
  Json::Array messages_;
  const std::string& where_;
};

}  // namespace

std::vector<Segment> chat_segments(const ChatTemplate& chat, const ChatTokens& tokens,
                                   const Conversation& conversation, const std::string& where) {
  return Cutter(chat, tokens, conversation, where).run();
}

}  // namespace megalith
