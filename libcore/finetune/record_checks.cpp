#include "libcore/finetune/record_checks.h"

#include <algorithm>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr const char* kAnswers[] = {"messages", "conversations", "tgt", "output", "completion", "response"};
constexpr const char* kQuestions[] = {"messages", "conversations", "src", "instruction", "prompt"};
constexpr const char* kOfTemplates[] = {"system", "tools", "chat_template_kwargs"};
constexpr const char* kPreferences[] = {"chosen", "rejected"};
constexpr const char* kMedia[] = {"images", "videos", "audios"};
constexpr const char* kOthers[] = {"text", "input", "history", "functions", "sort"};
constexpr const char* kJudgements[] = {"label", "kto_tag"};

template <class... Parts>
[[noreturn]] void refuse(const std::string& where, const Parts&... parts) {
  fail(ErrorKind::kData, where, ": ", parts...);
}

[[noreturn]] void refuse_preference(const char* name, const std::string& where) {
  refuse(where, quote(name), " is learned only with --dpo; give that option, or leave the member out");
}

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool has_answer(const Json& record) {
  return std::any_of(std::begin(kAnswers), std::end(kAnswers),
                     [&](const char* name) { return is_there(record.find(name)); });
}

class Checks {
 public:
  Checks(const Json& record, const std::string& where)
      : record_(record), where_(where), form_(record_form(record)) {}

  void record() const {
    refuse_two_answers();
    refuse_unread();
    refuse_avoided();
    refuse_two_questions();
    refuse_input("text");
    for (const char* name : kPreferences)
      if (holds(name) && !has_answer(record_)) refuse_preference(name, where_);
    refuse_beside_text();
  }

  void pair() const {
    refuse_unread();
    refuse_two_questions();
    refuse_input("chosen");
    for (const char* name : {"tgt", "output", "completion", "response", "text"})
      if (holds(name)) refuse_both("chosen", name);
  }

 private:
  bool holds(const char* name) const { return is_there(record_.find(name)); }

  [[noreturn]] void refuse_both(const char* first, const char* second) const {
    refuse(where_, "holds both ", quote(first), " and ", quote(second), "; leave one of them out");
  }

  void refuse_two_answers() const {
    const char* first = nullptr;
    for (const char* name : kAnswers) {
      if (!holds(name)) continue;
      if (first != nullptr) refuse_both(first, name);
      first = name;
    }
  }

  void refuse_two_questions() const {
    if (form_.empty()) return;
    const bool conversation = form_ == "messages" || form_ == "conversations";
    for (const char* name : kQuestions)
      if (name != form_ && holds(name) && !(conversation && name == std::string_view("prompt")))
        refuse_both(form_.data(), name);
  }

  /// `beside`: what a record without a question is read as.
  void refuse_input(const char* beside) const {
    if (!holds("input") || form_ == "instruction") return;
    if (form_.empty() && !holds(beside)) return;  // the record has no known form
    refuse(where_, "\"input\" cannot be used with ", quote(form_.empty() ? beside : form_),
           "; give \"instruction\", or leave it out");
  }

  void refuse_beside_text() const {
    if (form_ != "text") return;
    for (const char* name : kAnswers)
      if (holds(name)) refuse_both("text", name);
    refuse_for_template(record_, "text", where_);
  }

  void refuse_unread() const {
    for (const char* name : kMedia)
      if (holds(name))
        refuse(where_, quote(name),
               ": only texts are learned; leave them out, with the records that need them");
    if (holds("functions")) refuse(where_, "\"functions\" are not read; give \"tools\"");
    if (holds("history")) refuse(where_, "\"history\" is not read; give \"messages\" with its turns instead");
  }

  /// A "label" beside a text alone is a class, as in sets for classification.
  void refuse_avoided() const {
    for (const char* name : kJudgements)
      if (const Json* label = record_.find(name); label && *label == Json(false) && has_answer(record_))
        refuse(where_, quote(name),
               " is false: an answer to avoid would be learned; leave the record out, or give ",
               "\"chosen\" and \"rejected\" with --dpo");
  }

  const Json& record_;
  const std::string& where_;
  const std::string_view form_;
};

/// Whether refuse_avoided() looks at a member.
bool is_judgement(std::string_view name, const Json& value) {
  return value.is_bool() && is_among(kJudgements, name);
}

bool is_known(std::string_view name) {
  return is_among(kAnswers, name) || is_among(kQuestions, name) || is_among(kOfTemplates, name) ||
         is_among(kPreferences, name) || is_among(kMedia, name) || is_among(kOthers, name);
}

}  // namespace

bool is_there(const Json* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_string()) return !value->as_string().empty();
  if (value->is_array()) return !value->as_array().empty();
  return !value->is_object() || !value->as_object().empty();
}

const char* record_form(const Json& record) {
  for (const char* name : kQuestions)
    if (is_there(record.find(name))) return name;
  if (is_there(record.find("text")) && !has_answer(record)) return "text";
  for (const bool text : {true, false})  // an empty question may have an answer
    for (const char* name : kQuestions)
      if (const Json* found = record.find(name); found && found->is_string() == text) return name;
  return record.find("text") ? "text" : "";
}

Json last_content(const Json& answer) {
  const Json* const last =
      answer.is_array() && !answer.as_array().empty() ? &answer.as_array().back() : &answer;
  if (!last->is_object()) return *last;
  for (const char* name : {"value", "content"})
    if (const Json* content = last->find(name)) return *content;
  return {};
}

void check_record_members(const Json& record, const std::string& where) {
  Checks(record, where).record();
}

void check_pair_members(const Json& record, const std::string& where) {
  Checks(record, where).pair();
}

void refuse_for_template(const Json& record, const char* beside, const std::string& where) {
  for (const char* name : kOfTemplates)
    if (is_there(record.find(name)))
      refuse(where, quote(name), " cannot be used with ", quote(beside), "; give \"messages\" instead");
}

void check_rendering(const Json& record, const char* form, const std::vector<std::string_view>& parts,
                     const std::string& where) {
  const Json* const text = record.find("text");
  if (!is_there(text)) return;
  if (!text->is_string())
    refuse(where, "\"text\" is ", shortened(text->dump(), 60), "; wanted a text, or leave it out");
  for (const std::string_view part : parts)
    if (text->as_string().find(trim(part)) == std::string::npos)
      refuse(where, "holds both ", quote(form), " and \"text\", which does not contain ",
             quote(shortened(std::string(trim(part)), 60)), "; leave one of them out");
}

void check_chosen(const Json& record, const std::string& answer, const std::string& where) {
  const Json* const chosen = record.find("chosen");
  if (is_there(chosen) && last_content(*chosen) != Json(answer)) refuse_preference("chosen", where);
}

std::vector<std::string> unread_members(const Json& record) {
  std::vector<std::string> out;
  for (const auto& [name, value] : record.as_object())
    if (is_there(&value) && !is_judgement(name, value) && !is_known(name)) out.push_back(name);
  return out;
}

}  // namespace megalith
