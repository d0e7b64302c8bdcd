#include "libcore/finetune/records.h"

#include <array>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/line_reader.h"

namespace megalith {
namespace {

constexpr const char* kWanted =
    "wanted \"src\" and \"tgt\", \"instruction\" and \"output\", \"prompt\" and \"completion\", \"messages\" "
    "or \"conversations\"";

constexpr const char* kWantedPair =
    "wanted \"chosen\" and \"rejected\" with \"prompt\", \"instruction\", \"messages\" or \"conversations\"";

class Reader {
 public:
  Reader(const Json& json, const RecordOptions& options, const std::string& where)
      : json_(json), options_(options), where_(where) {}

  Record read() const {
    if (!json_.is_object()) refuse("found ", shortened(json_.dump(), 60), "; wanted an object");
    if (json_.find("messages")) return messages("messages", "role", "content");
    if (json_.find("conversations")) return messages("conversations", "from", "value");
    if (json_.find("src")) return pair("src", "tgt");
    if (json_.find("instruction")) return instruction();
    if (json_.find("prompt")) return pair("prompt", json_.find("completion") ? "completion" : "response");
    refuse("found ", names(), "; ", kWanted);
  }

  RecordPair read_pair() const {
    if (!json_.is_object()) refuse("found ", shortened(json_.dump(), 60), "; wanted an object");
    for (const char* name : {"chosen", "rejected"})
      if (!json_.find(name)) refuse("found ", names(), "; ", kWantedPair);
    RecordPair out{with_answer("chosen"), with_answer("rejected")};
    for (Record* record : {&out.chosen, &out.rejected})
      for (size_t i = 0; i + 1 < record->segments.size(); ++i) record->segments[i].answer = false;
    if (out.chosen.answer == out.rejected.answer)
      refuse(
          "\"chosen\" and \"rejected\" are the same answer: there is nothing to learn; leave the record out");
    return out;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": ", parts...);
  }

  std::string names() const {
    std::vector<std::string> list;
    for (const auto& [name, value] : json_.as_object()) list.push_back(quote(name));
    return list.empty() ? std::string("no member") : join(list, ", ");
  }

  const std::string& text(const char* name) const { return text(json_, name); }
  const std::string& text(const Json& object, const char* name) const {
    const Json* value = object.find(name);
    if (value == nullptr) refuse("has no ", quote(name), "; ", kWanted);
    if (!value->is_string()) refuse(quote(name), " is ", shortened(value->dump(), 60), "; wanted a text");
    const std::string& found = value->as_string();
    if (valid_utf8_prefix(found) != found.size()) refuse(quote(name), " is not valid UTF-8");
    return found;
  }
  std::string optional_text(const char* name) const {
    const Json* value = json_.find(name);
    return value == nullptr || value->is_null() ? std::string() : text(name);
  }
  const std::string& answer(const char* name) const {
    const std::string& found = text(name);
    if (found.empty()) refuse(quote(name), " is empty: there is nothing to learn; leave the record out");
    return found;
  }

  Record asked(std::string prompt, const std::string& answer, bool chat) const {
    if (chat)
      return conversation({Json(Json::Object{{"role", "user"}, {"content", std::move(prompt)}}),
                           Json(Json::Object{{"role", "assistant"}, {"content", answer}})},
                          "prompt");
    return {.segments = {{std::move(prompt), false}, {answer, true}},
            .rendered = false,
            .where = where_,
            .answer = answer};
  }

  Record pair(const char* question, const char* reply) const {
    return asked(text(question), answer(reply), options_.style == PromptStyle::kChat);
  }

  Record instruction() const { return instruction(answer("output")); }
  Record instruction(const std::string& reply) const {
    for (const char* name : {"system", "history"})
      if (const Json* value = json_.find(name);
          value && !value->is_null() && *value != Json("") && *value != Json(Json::array()))
        refuse(quote(name), " is not known together with \"instruction\"; give \"messages\" instead");
    const std::string question = text("instruction"), input = optional_text("input");
    if (options_.style == PromptStyle::kAlpaca) return asked(alpaca_prompt(question, input), reply, false);
    return asked(input.empty() ? question : question + "\n" + input, reply,
                 options_.style == PromptStyle::kChat);
  }

  Record messages(const char* list_name, const char* role_name, const char* content_name) const {
    Json::Array out;
    append_messages(out, list_name, {role_name, content_name});
    return conversation(std::move(out), list_name);
  }

  /// The names that the members of a message have.
  struct MessageNames {
    const char *role, *content;
  };
  static MessageNames names_in(const Json& message) {
    return message.is_object() && message.find("from") ? MessageNames{"from", "value"}
                                                       : MessageNames{"role", "content"};
  }
  void append_messages(Json::Array& out, const char* list_name, const MessageNames& names) const {
    const Json& list = json_[list_name];
    if (!list.is_array() || list.as_array().empty())
      refuse(quote(list_name), " is ", shortened(list.dump(), 60), "; wanted a list of messages");
    for (const Json& message : list.as_array()) out.push_back(message_of(message, names));
  }
  Json message_of(const Json& message, const MessageNames& names) const {
    if (!message.is_object()) refuse("found ", shortened(message.dump(), 60), "; wanted a message");
    const std::string role = role_of(text(message, names.role));
    return Json(Json::Object{{"role", role}, {"content", text(message, names.content)}});
  }

  Record conversation(Json::Array&& list, const char* name) const {
    const Json* answer = nullptr;
    for (const Json& message : list)
      if (message["role"] == Json("assistant") && message["content"] != Json(""))
        answer = &message["content"];
    if (answer == nullptr) refuse(quote(name), " holds no answer of the assistant; leave the record out");
    std::string reply = answer->as_string();
    Record out = rendered(list);
    out.answer = std::move(reply);
    return out;
  }

  /// The question of a preference record, with the answer in the member `name`.
  Record with_answer(const char* name) const {
    const Json& value = json_[name];
    const bool chat = options_.style == PromptStyle::kChat;
    const Json* const prompt = json_.find("prompt");
    if (value.is_string() && prompt && prompt->is_string()) return asked(text("prompt"), answer(name), chat);
    if (value.is_string() && json_.find("instruction")) return instruction(answer(name));
    Json::Array list;
    for (const char* before : {"prompt", "messages", "conversations"})
      if (const Json* found = json_.find(before); found && found->is_array() && !found->as_array().empty())
        append_messages(list, before, names_in(found->as_array().front()));
    if (value.is_array() && !value.as_array().empty())
      append_messages(list, name, names_in(value.as_array().front()));
    else if (value.is_object())
      list.push_back(message_of(value, names_in(value)));
    else
      list.push_back(Json(Json::Object{{"role", "assistant"}, {"content", answer(name)}}));
    if (list.size() < 2) refuse(quote(name), " answers nothing; ", kWantedPair);
    if (list.back()["role"] != Json("assistant"))
      refuse(quote(name), " ends with a message from ", list.back()["role"].dump(),
             "; wanted an answer of the assistant");
    return conversation(std::move(list), name);
  }

  std::string role_of(const std::string& word) const {
    static constexpr std::array<std::pair<const char*, const char*>, 7> kRoles = {{{"system", "system"},
                                                                                   {"user", "user"},
                                                                                   {"human", "user"},
                                                                                   {"assistant", "assistant"},
                                                                                   {"gpt", "assistant"},
                                                                                   {"model", "assistant"},
                                                                                   {"tool", "tool"}}};
    for (const auto& [known, role] : kRoles)
      if (word == known) return role;
    refuse("a message is from ", quote(word), "; wanted system, user (human) or assistant (gpt)");
  }

  Record rendered(const Json::Array& list) const {
    if (!options_.render)
      fail(ErrorKind::kUsage, where_,
           ": a conversation needs a chat template and the model has none; give --chat-template FILE");
    return {.segments = options_.render(list, where_), .rendered = true, .where = where_};
  }

  const Json& json_;
  const RecordOptions& options_;
  const std::string& where_;
};

}  // namespace

std::string alpaca_prompt(const std::string& instruction, const std::string& input) {
  const bool with_input = !input.empty();
  std::string text = with_input ? "Below is an instruction that describes a task, paired with an input that "
                                  "provides further context. "
                                : "Below is an instruction that describes a task. ";
  text += "Write a response that appropriately completes the request.\n\n### Instruction:\n" + instruction;
  if (with_input) text += "\n\n### Input:\n" + input;
  return text + "\n\n### Response:\n";
}

Record record_of(const Json& json, const RecordOptions& options, const std::string& where) {
  return Reader(json, options, where).read();
}

RecordPair pair_of(const Json& json, const RecordOptions& options, const std::string& where) {
  return Reader(json, options, where).read_pair();
}

namespace {

void read_objects(const std::string& path, int64_t max_records,
                  const std::function<void(const Json&, const std::string& where)>& take) {
  int64_t count = 0;
  LineReader reader(path, {.refused = kLongestLine});
  LineBatch batch;
  while (reader.next(batch, [](size_t) {}))
    for (size_t i = 0; i < batch.lines(); ++i) {
      const std::string where = concat(path, ":", batch.place(i, 0).line);
      const std::span<char> line = batch.line(i);
      const std::string_view text(line.data(), line.size());
      if (trim(text).empty()) continue;
      take(Json::parse(text, where), where);
      if (++count == max_records) return;
    }
}

}  // namespace

void read_records(const std::string& path, const RecordOptions& options,
                  const std::function<void(Record&&)>& take) {
  read_objects(path, options.max_records,
               [&](const Json& json, const std::string& where) { take(record_of(json, options, where)); });
}

void read_pairs(const std::string& path, const RecordOptions& options,
                const std::function<void(RecordPair&&)>& take) {
  read_objects(path, options.max_records,
               [&](const Json& json, const std::string& where) { take(pair_of(json, options, where)); });
}

}  // namespace megalith
