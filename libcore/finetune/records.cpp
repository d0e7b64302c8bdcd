#include "libcore/finetune/records.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/finetune/record_checks.h"
#include "libcore/io/files/file.h"
#include "libcore/io/parquet/parquet_records.h"

namespace megalith {
namespace {

constexpr const char* kWanted =
    "wanted \"src\" and \"tgt\", \"instruction\" and \"output\", \"prompt\" and \"completion\", "
    "\"messages\", \"conversations\" or \"text\"";

constexpr const char* kWantedPair =
    "wanted \"chosen\" and \"rejected\" with \"prompt\", \"instruction\", \"messages\" or \"conversations\"";

class Reader {
 public:
  Reader(const Json& json, const RecordOptions& options, const std::string& where)
      : json_(json), options_(options), where_(where) {}

  Record read() const {
    if (!json_.is_object()) refuse("found ", shortened(json_.dump(), 60), "; wanted an object");
    check_record_members(json_, where_);
    const std::string_view form = record_form(json_);
    if (form.empty()) refuse("found ", names(), "; ", kWanted);
    if (form == "src") return pair("src", "tgt");
    if (form == "instruction") return instruction();
    if (form == "prompt")
      return pair("prompt",
                  json_.find("completion") && !is_there(json_.find("response")) ? "completion" : "response");
    return form == "text" ? plain() : messages(form.data());
  }

  RecordPair read_pair() const {
    if (!json_.is_object()) refuse("found ", shortened(json_.dump(), 60), "; wanted an object");
    for (const char* name : {"chosen", "rejected"})
      if (!json_.find(name)) refuse("found ", names(), "; ", kWantedPair);
    check_pair_members(json_, where_);
    RecordPair out{with_answer("chosen"), with_answer("rejected")};
    for (Record* record : {&out.chosen, &out.rejected})
      for (size_t i = 0; i + 1 < record->segments.size(); ++i) record->segments[i].answer = false;
    if (!same_question(out))
      refuse("\"chosen\" and \"rejected\" answer different questions; wanted two answers to one question");
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

  static bool same_question(const RecordPair& pair) {
    const std::vector<Segment>&a = pair.chosen.segments, &b = pair.rejected.segments;
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i + 1 < a.size(); ++i)
      if (a[i].text != b[i].text) return false;
    return true;
  }

  static Json message(const char* role, std::string content) {
    return Json(Json::Object{{"role", role}, {"content", std::move(content)}});
  }

  Record asked(std::string prompt, const std::string& answer, bool chat) const {
    if (chat) {
      Conversation list;
      add(list, message("user", std::move(prompt)));
      add(list, message("assistant", answer));
      return conversation(std::move(list), "prompt");
    }
    refuse_for_template(json_, record_form(json_), where_);
    return {.segments = {{std::move(prompt), false}, {answer, true}},
            .rendered = false,
            .where = where_,
            .answer = answer};
  }

  Record pair(const char* question, const char* reply) const {
    const Json *asks = json_.find(question), *replies = json_.find(reply);
    const bool lists = std::string_view(question) == "prompt" &&
                       (asks->is_array() || (replies != nullptr && replies->is_array()));
    if (!lists) {
      check_rendering(json_, question, {text(question), answer(reply)}, where_);
      return asked(text(question), answer(reply), options_.style == PromptStyle::kChat);
    }
    Conversation list;
    append_texts_or_messages(list, question, "user");
    list.learned.assign(list.messages.size(), false);
    append_texts_or_messages(list, reply, "assistant");
    check_text(list, question);
    return conversation(std::move(list), reply);
  }

  void append_texts_or_messages(Conversation& out, const char* name, const char* role) const {
    if (json_.find(name) && json_[name].is_array())
      append_messages(out, name, names_of(json_[name]));
    else
      add(out, message(role, answer(name)));
  }

  Record plain() const {
    const std::string& whole = answer("text");
    return {.segments = {{whole, true}}, .rendered = false, .where = where_, .answer = whole};
  }

  Record instruction() const {
    const std::string input = optional_text("input");
    check_rendering(json_, "instruction", {text("instruction"), input, answer("output")}, where_);
    return instruction(answer("output"));
  }
  Record instruction(const std::string& reply) const {
    refuse_for_template(json_, "instruction", where_);
    const std::string question = text("instruction"), input = optional_text("input");
    if (options_.style == PromptStyle::kAlpaca) return asked(alpaca_prompt(question, input), reply, false);
    return asked(input.empty() ? question : question + "\n" + input, reply,
                 options_.style == PromptStyle::kChat);
  }

  /// The names that the members of a message have.
  struct MessageNames {
    const char *role, *content;
  };
  static MessageNames names_of(const Json& list) {
    const Json* const first = list.is_array() && !list.as_array().empty() ? &list.as_array().front() : &list;
    return first->is_object() && first->find("from") ? MessageNames{"from", "value"}
                                                     : MessageNames{"role", "content"};
  }

  Record messages(const char* list_name) const {
    Conversation out;
    append_messages(out, list_name, names_of(json_[list_name]));
    check_prompt(out, list_name);
    check_text(out, list_name);
    return conversation(std::move(out), list_name);
  }
  /// A text beside a conversation must be its rendering.
  void check_text(const Conversation& list, const char* name) const {
    std::vector<std::string_view> parts;
    for (size_t i = 0; i < list.messages.size(); ++i) {
      const Json &role = list.messages[i]["role"], &content = list.messages[i]["content"];
      if (content.is_string() && (role == Json("user") || (role == Json("assistant") && list.learned[i])))
        parts.push_back(content.as_string());
    }
    check_rendering(json_, name, parts, where_);
  }
  /// A prompt beside a whole conversation must repeat one of its questions, or its beginning: any other would
  /// be dropped.
  void check_prompt(const Conversation& list, const char* name) const {
    const Json* const prompt = json_.find("prompt");
    if (!is_there(prompt)) return;
    if (prompt->is_array()) return check_beginning(list, "prompt", name);
    for (const Json& one : list.messages)
      if (one["role"] == Json("user") && one["content"] == *prompt) return;
    refuse("\"prompt\" is not a question in ", quote(name), "; leave one of them out");
  }

  static void add(Conversation& out, Json message, bool learned = true) {
    out.messages.push_back(std::move(message));
    out.learned.push_back(learned);
  }
  void append_messages(Conversation& out, const char* list_name, const MessageNames& names) const {
    const Json& list = json_[list_name];
    if (!list.is_array() || list.as_array().empty())
      refuse(quote(list_name), " is ", shortened(list.dump(), 60), "; wanted a list of messages");
    for (const Json& message : list.as_array()) append_message(out, message, names);
  }
  /// Appends a message with all its members, as the template may read them, except the weight.
  void append_message(Conversation& out, const Json& given, const MessageNames& names) const {
    if (!given.is_object()) refuse("found ", shortened(given.dump(), 60), "; wanted a message");
    if (is_there(given.find("function_call")))
      refuse("\"function_call\" of a message is not read; give \"tool_calls\"");
    Json::Object made{{"role", role_of(text(given, names.role))}};
    const Json* const content = given.find(names.content);
    const bool calls_only = is_there(given.find("tool_calls")) && (content == nullptr || content->is_null());
    made.emplace_back("content", calls_only ? Json() : Json(text(given, names.content)));
    for (const auto& [name, value] : given.as_object())
      if (name != "weight" && name != names.role && name != names.content && name != "role" &&
          name != "content")
        made.emplace_back(name, value);
    add(out, Json(std::move(made)), is_learned(given));
  }
  bool is_learned(const Json& message) const {
    const Json* const weight = message.find("weight");
    if (weight == nullptr || weight->is_null()) return true;
    if (!weight->is_number() || (weight->as_double() != 0 && weight->as_double() != 1))
      refuse("\"weight\" is ", shortened(weight->dump(), 60), "; wanted 1, or 0 for an answer not to learn");
    return weight->as_double() == 1;
  }

  Record conversation(Conversation&& list, const char* name) const {
    add_system(list);
    list.tools = tools();
    list.variables = variables();
    const Json* answer = nullptr;
    for (size_t i = 0; i < list.messages.size(); ++i) {
      const Json& one = list.messages[i];
      if (one["role"] == Json("assistant") && list.learned[i] &&
          (is_there(one.find("content")) || is_there(one.find("tool_calls"))))
        answer = &one;
    }
    if (answer == nullptr)
      refuse(quote(name), " holds no answer of the assistant to learn; leave the record out");
    std::string reply =
        is_there(answer->find("content")) ? (*answer)["content"].as_string() : (*answer)["tool_calls"].dump();
    Record out = rendered(list);
    out.answer = std::move(reply);
    return out;
  }
  void add_system(Conversation& list) const {
    const Json* const system = json_.find("system");
    if (!is_there(system)) return;
    const std::string& said = text("system");
    const Json& first = list.messages.front();
    if (first["role"] == Json("system") || first["role"] == Json("developer")) {
      if (first["content"] == Json(said)) return;
      refuse("holds \"system\" and begins with another system message; leave one of them out");
    }
    list.messages.insert(list.messages.begin(), message("system", said));
    list.learned.insert(list.learned.begin(), false);
  }
  /// The list of tools, which may be a JSON text, as in LLaMA-Factory's files.
  Json tools() const {
    const Json* const given = json_.find("tools");
    if (!is_there(given)) return {};
    const Json list = given->is_string() ? Json::parse(given->as_string(), where_ + ": \"tools\"") : *given;
    if (!list.is_array()) refuse("\"tools\" is ", shortened(list.dump(), 60), "; wanted a list of tools");
    return list.as_array().empty() ? Json() : list;
  }

  /// The variables that the record gives the template.
  Json::Object variables() const {
    const Json* const given = json_.find("chat_template_kwargs");
    if (!is_there(given)) return {};
    if (!given->is_object())
      refuse("\"chat_template_kwargs\" is ", shortened(given->dump(), 60), "; wanted an object");
    for (const auto& [name, value] : given->as_object())
      for (const char* own : {"messages", "tools", "add_generation_prompt"})
        if (name == own) refuse("\"chat_template_kwargs\" holds ", quote(name), "; leave it out there");
    return given->as_object();
  }

  /// The question of a preference record, with the answer in the member `name`.
  Record with_answer(const char* name) const {
    const Json& value = json_[name];
    const bool chat = options_.style == PromptStyle::kChat;
    const bool whole = is_whole(value);
    if (!whole) refuse_prompt_beside_messages();
    const std::string_view form = record_form(json_);
    if (value.is_string() && form == "prompt" && json_["prompt"].is_string())
      return asked(text("prompt"), answer(name), chat);
    if (value.is_string() && form == "instruction") return instruction(answer(name));
    for (const char* text : {"instruction", "src"})
      if (is_there(json_.find(text)))
        refuse(quote(text), " cannot be used with this ", quote(name), "; give \"prompt\" instead");
    Conversation list;
    if (whole) {
      append_messages(list, name, names_of(value));
      check_prompt(list, name);
      for (const char* before : {"messages", "conversations"})
        if (is_there(json_.find(before))) check_beginning(list, before, name);
    } else {
      append_questions(list);
      append_answer(list, name);
    }
    if (list.messages.size() < 2) refuse(quote(name), " answers nothing; ", kWantedPair);
    if (list.messages.back()["role"] != Json("assistant"))
      refuse(quote(name), " ends with a message from ", list.messages.back()["role"].dump(),
             "; wanted an answer of the assistant");
    return conversation(std::move(list), name);
  }
  void refuse_prompt_beside_messages() const {
    for (const char* list : {"messages", "conversations"})
      if (is_there(json_.find("prompt")) && is_there(json_.find(list)))
        refuse("holds both \"prompt\" and ", quote(list), "; leave one of them out");
  }
  /// Whether a list of messages holds a question too.
  bool is_whole(const Json& value) const {
    if (!value.is_array()) return false;
    const MessageNames names = names_of(value);
    for (const Json& one : value.as_array())
      if (const Json* role = one.is_object() ? one.find(names.role) : nullptr;
          role && role->is_string() && role_of(role->as_string()) != "assistant")
        return true;
    return false;
  }
  void append_questions(Conversation& list) const {
    if (const Json* prompt = json_.find("prompt"); is_there(prompt) && prompt->is_string())
      add(list, message("user", text("prompt")));
    for (const char* before : {"prompt", "messages", "conversations"})
      if (const Json* found = json_.find(before); is_there(found) && found->is_array())
        append_messages(list, before, names_of(*found));
  }
  void append_answer(Conversation& list, const char* name) const {
    const Json& value = json_[name];
    if (value.is_array() && !value.as_array().empty())
      append_messages(list, name, names_of(value));
    else if (value.is_object())
      append_message(list, value, names_of(value));
    else
      add(list, message("assistant", answer(name)));
  }
  /// Messages beside a whole conversation must be its beginning. Behind it they may have one of the answers.
  void check_beginning(const Conversation& list, const char* before, const char* name) const {
    Conversation said;
    append_messages(said, before, names_of(json_[before]));
    if (!begins_with(list, said) && is_given_answer(said.messages.back())) said.messages.pop_back();
    if (!begins_with(list, said))
      refuse(quote(before), " is not how ", quote(name), " begins; leave one of them out");
  }

  static bool begins_with(const Conversation& whole, const Conversation& part) {
    return part.messages.size() <= whole.messages.size() &&
           std::equal(part.messages.begin(), part.messages.end(), whole.messages.begin());
  }
  /// Whether a message is the last one of "chosen" or "rejected".
  bool is_given_answer(const Json& message) const {
    for (const char* name : {"chosen", "rejected"})
      if (const Json* given = json_.find(name); given && last_content(*given) == message["content"])
        return message["role"] == Json("assistant");
    return false;
  }

  std::string role_of(const std::string& word) const {
    for (const char* role : {"system", "developer", "user", "assistant", "tool"})
      if (word == role) return word;
    if (word == "human") return "user";
    if (word == "gpt" || word == "model") return "assistant";
    refuse("a message is from ", quote(word),
           "; wanted system, developer, user (human), assistant (gpt) or tool");
  }

  Record rendered(const Conversation& list) const {
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
  Record record = Reader(json, options, where).read();
  check_chosen(json, record.answer, where);
  return record;
}

namespace {

/// The turns of a record of PaddleNLP's run_dpo.py, whose "src" and "tgt" alternate, as a list of messages;
/// one question alone is a text.
Json asked_in_turns(const Json::Array& asked, const Json::Array& answered) {
  if (asked.size() == 1) return asked.front();
  Json::Array turns;
  for (size_t i = 0; i < asked.size(); ++i) {
    turns.push_back(Json::Object{{"role", "user"}, {"content", asked[i]}});
    if (i < answered.size()) turns.push_back(Json::Object{{"role", "assistant"}, {"content", answered[i]}});
  }
  return turns;
}

Json::Array listed(const Json* value) {
  if (value == nullptr || value->is_null() || *value == Json("")) return {};
  return value->is_array() ? value->as_array() : Json::Array{*value};
}

/// A record of PaddleNLP's run_dpo.py ("src", "tgt", "response", "sort") with our names. The answer with the
/// larger "sort" is the chosen one.
Json with_our_names(const Json& record, const std::string& where) {
  const Json* const sort = record.find("sort");
  const Json::Array asked = listed(record.find("src")), answered = listed(record.find("tgt")),
                    answers = listed(record.find("response")), order = listed(sort);
  const bool numbers = order.size() == 2 && order[0].is_number() && order[1].is_number();
  if (answers.size() != 2 || !numbers || order[0].as_double() == order[1].as_double())
    fail(ErrorKind::kData, where, ": wanted two answers in \"response\", and in \"sort\" two different ",
         "numbers, of which the larger one is the preferred answer's");
  if (asked.empty() || answered.size() + 1 != asked.size())
    fail(ErrorKind::kData, where, ": \"src\" has ", asked.size(), " questions and \"tgt\" ", answered.size(),
         " answers; wanted one question more than answers");
  const auto answer = [&](size_t at) -> Json {
    const Json::Array texts = listed(&answers[at]);
    return texts.size() == 1 ? texts.front() : answers[at];
  };
  const size_t best = order[0].as_double() > order[1].as_double() ? 0 : 1;
  Json::Object named = {
      {"prompt", asked_in_turns(asked, answered)}, {"chosen", answer(best)}, {"rejected", answer(1 - best)}};
  for (const auto& [name, value] : record.as_object())
    if (name != "src" && name != "tgt" && name != "response" && name != "sort")
      named.emplace_back(name, value);
  return named;
}

}  // namespace

RecordPair pair_of(const Json& json, const RecordOptions& options, const std::string& where) {
  if (!json.is_object() || !json.find("sort") || !json.find("response"))
    return Reader(json, options, where).read_pair();
  const Json named = with_our_names(json, where);
  return Reader(named, options, where).read_pair();
}

namespace {

void read_objects(const std::string& path, const RecordOptions& options,
                  const std::function<void(const Json&, const std::string& where)>& take) {
  int64_t count = 0;
  const char* const before_place = is_parquet(path) ? ": row " : ":";
  const std::unique_ptr<RecordReader> reader = open_corpus(path, {}, {.refused = kLongestLine});
  LineBatch batch;
  const bool sized = std::filesystem::is_regular_file(path);
  Progress progress(concat("reading ", path), sized ? static_cast<int64_t>(file_size(path)) : 0, "B");
  while (reader->next(batch, [](size_t) {})) {
    progress.advance_to(static_cast<int64_t>(reader->consumed()), concat(format_count(count), " records"));
    for (size_t i = 0; i < batch.lines(); ++i) {
      const std::string where = concat(path, before_place, batch.place(i, 0).line);
      const std::span<char> line = batch.line(i);
      const std::string_view text(line.data(), line.size());
      if (trim(text).empty()) continue;
      const Json json = Json::parse(text, where);
      take(json, where);
      if (options.unread)
        for (const std::string& member : unread_members(json)) options.unread(member);
      if (++count == options.max_records) return;
    }
  }
}

}  // namespace

void read_records(const std::string& path, const RecordOptions& options,
                  const std::function<void(Record&&)>& take) {
  read_objects(path, options, [&](const Json& json, const std::string& where) {
    take(record_of(json, options, where));
    if (options.unread && is_there(json.find("rejected"))) options.unread("rejected");
  });
}

void read_pairs(const std::string& path, const RecordOptions& options,
                const std::function<void(RecordPair&&)>& take) {
  read_objects(path, options,
               [&](const Json& json, const std::string& where) { take(pair_of(json, options, where)); });
}

}  // namespace megalith
