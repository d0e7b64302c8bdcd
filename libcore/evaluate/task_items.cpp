#include "libcore/evaluate/task_items.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/generate/prompts.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/json/json.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {

/// The items of a file as they are read: the place of the current one, and what its form wants.
struct ItemFile {
  std::string path;
  std::string members;
  size_t line = 0;  // counted from 1

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, path, ":", line, ": ", parts..., " (an item has ", members, ")");
  }
  const Json& member(const Json& object, const char* key) const {
    const Json* const value = object.find(key);
    if (value == nullptr) refuse("has no ", quote(key), "; found ", shortened(object.dump(), 60));
    return *value;
  }
  const std::string& text(const Json& value, const char* what) const {
    if (!value.is_string()) refuse(quote(what), " is ", shortened(value.dump(), 60), "; wanted a text");
    return value.as_string();
  }
  const std::string& text_member(const Json& object, const char* key) const {
    return text(member(object, key), key);
  }
  const Json::Array& list(const Json& value, const char* what) const {
    if (!value.is_array() || value.as_array().empty())
      refuse(quote(what), " is ", shortened(value.dump(), 60), "; wanted a list of choices");
    return value.as_array();
  }
  std::vector<std::string> texts(const Json& value, const char* what) const {
    std::vector<std::string> out;
    for (const Json& one : list(value, what)) out.push_back(text(one, what));
    return out;
  }
  /// An index of a choice, as a number or as a text of one.
  size_t index(const Json& value, const char* what, size_t choices) const {
    const std::optional<int64_t> number = value.is_int()      ? value.as_int()
                                          : value.is_string() ? parse_int(value.as_string())
                                                              : std::nullopt;
    if (!number || *number < 0 || *number >= static_cast<int64_t>(choices))
      refuse(quote(what), " is ", shortened(value.dump(), 60), "; wanted an index from 0 to ", choices - 1,
             value == Json("") ? "; files without answers cannot be scored" : "");
    return static_cast<size_t>(*number);
  }
};

namespace {

TaskItem hellaswag_item(const ItemFile& file, const Json& object) {
  TaskItem item;
  const std::string& activity = file.text_member(object, "activity_label");
  const std::string& first = file.text_member(object, "ctx_a");
  const std::string second = capitalized(file.text_member(object, "ctx_b"));
  item.context = hellaswag_text(concat(activity, ": ", first, ' ', second));
  for (const std::string& ending : file.texts(file.member(object, "endings"), "endings"))
    item.continuations.push_back(hellaswag_text(ending));
  item.answer = file.index(file.member(object, "label"), "label", item.continuations.size());
  return item;
}

/// ARC's choices: AI2's list of {"text", "label"}, or the two lists of Hugging Face's copy.
struct LabelledChoices {
  std::vector<std::string> texts, labels;
};
LabelledChoices labelled_choices(const ItemFile& file, const Json& choices) {
  LabelledChoices out;
  if (choices.is_object()) {
    out.texts = file.texts(file.member(choices, "text"), "text");
    out.labels = file.texts(file.member(choices, "label"), "label");
    if (out.texts.size() != out.labels.size())
      file.refuse(quote("choices"), " has ", out.texts.size(), " texts and ", out.labels.size(), " labels");
    return out;
  }
  for (const Json& choice : file.list(choices, "choices")) {
    out.texts.push_back(file.text_member(choice, "text"));
    out.labels.push_back(file.text_member(choice, "label"));
  }
  return out;
}

TaskItem arc_item(const ItemFile& file, const Json& object) {
  const Json& question = file.member(object, "question");
  const bool inside = question.is_object();
  const std::string& stem = inside ? file.text_member(question, "stem") : file.text(question, "question");
  LabelledChoices choices = labelled_choices(file, file.member(inside ? question : object, "choices"));
  const std::string& key = file.text_member(object, "answerKey");
  const auto found = std::ranges::find(choices.labels, key);
  if (found == choices.labels.end())
    file.refuse(quote("answerKey"), " is ", quote(key), "; the choices are ", join(choices.labels, ", "));
  return {.context = "Question: " + stem + "\nAnswer:",
          .continuations = std::move(choices.texts),
          .answer = static_cast<size_t>(found - choices.labels.begin()),
          .source = {}};
}

TaskItem piqa_item(const ItemFile& file, const Json& object) {
  TaskItem item{.context = "Question: " + file.text_member(object, "goal") + "\nAnswer:",
                .continuations = {file.text_member(object, "sol1"), file.text_member(object, "sol2")},
                .answer = 0,
                .source = {}};
  item.answer = file.index(file.member(object, "label"), "label", 2);
  return item;
}

TaskItem lambada_item(const ItemFile& file, const Json& object) {
  const std::string& text = file.text_member(object, "text");
  const size_t blank = text.rfind(' ');
  const std::string last = blank == std::string::npos ? text : text.substr(blank + 1);
  return {.context = blank == std::string::npos ? std::string() : text.substr(0, blank),
          .continuations = {" " + last},
          .answer = 0,
          .source = {}};
}

TaskItem own_item(const ItemFile& file, const Json& object) {
  if (object.find("text") != nullptr)
    return {.context = {}, .continuations = {file.text_member(object, "text")}, .answer = 0, .source = {}};
  TaskItem item{.context = file.text_member(object, "context"),
                .continuations = file.texts(file.member(object, "choices"), "choices"),
                .answer = 0,
                .source = {}};
  item.answer = file.index(file.member(object, "answer"), "answer", item.continuations.size());
  return item;
}

constexpr TaskForm kForms[] = {
    {"hellaswag", TaskKind::kChoices, OwnExample::kLeftOut, "ctx_a, ctx_b, endings, label, activity_label",
     hellaswag_item},
    {"arc_easy", TaskKind::kChoices, OwnExample::kLeftOutOfOwnFile, "question, answerKey", arc_item},
    {"arc_challenge", TaskKind::kChoices, OwnExample::kLeftOutOfOwnFile, "question, answerKey", arc_item},
    {"piqa", TaskKind::kChoices, OwnExample::kLeftOut, "goal, sol1, sol2 and, here or beside it, label",
     piqa_item},
    {"lambada", TaskKind::kLastWord, OwnExample::kNotLeftOut, "text", lambada_item},
    {"lambada_openai", TaskKind::kLastWord, OwnExample::kNotLeftOut, "text", lambada_item},
    {"lambada_standard", TaskKind::kLastWord, OwnExample::kNotLeftOut, "text", lambada_item},
};
/// Our own form. A file of texts has kind kText, as its first item shows.
constexpr TaskForm kOwnForm{"", TaskKind::kChoices, OwnExample::kLeftOut,
                            "context, choices, answer, or text alone", own_item};

/// Calls visit(line) for each line that is not blank, after setting file.line.
void each_line(ItemFile& file, const std::function<void(std::string_view)>& visit) {
  const std::string text = read_text(file.path);
  for (const std::string& line : split(text, '\n')) {
    ++file.line;
    if (const std::string_view content = trim(line); !content.empty()) visit(content);
  }
}

/// PIQA's published answers: valid.jsonl, or valid.jsonl.gz, has valid-labels.lst beside it.
std::string labels_path(const std::string& path) {
  const std::filesystem::path file(uncompressed_name(path));
  return (file.parent_path() / (file.stem().string() + "-labels.lst")).string();
}

/// Adds the labels of the file beside `path` to items that have none.
class PiqaLabels {
 public:
  explicit PiqaLabels(const std::string& path) : file_{labels_path(path), "0 or 1 in each line"} {
    if (file_exists(file_.path)) each_line(file_, [&](std::string_view line) { labels_.emplace_back(line); });
  }
  void add(const ItemFile& items, Json& object) {
    if (object.find("label") != nullptr) return;
    if (labels_.empty())
      items.refuse("has no \"label\", and there is no ", file_.path, " with the labels, one a line");
    if (next_ == labels_.size())
      items.refuse("the item is number ", next_ + 1, ", but ", file_.path, " has ", labels_.size(),
                   " labels");
    object.set("label", labels_[next_++]);
  }
  void check_end() const {
    if (next_ > 0 && next_ < labels_.size())
      fail(ErrorKind::kData, file_.path, ": has ", labels_.size(), " labels for ", next_,
           " items; it belongs to another file");
  }

 private:
  ItemFile file_;
  std::vector<std::string> labels_;
  size_t next_ = 0;
};

}  // namespace

const TaskForm* find_task_form(std::string_view name) {
  const auto* const found = std::ranges::find(kForms, name, &TaskForm::name);
  return found == std::end(kForms) ? nullptr : found;
}

std::vector<std::string> task_form_names() {
  std::vector<std::string> names;
  for (const TaskForm& form : kForms) names.emplace_back(form.name);
  return names;
}

TaskItems read_task_items(const std::string& path, const TaskForm* form) {
  const TaskForm& rules = form ? *form : kOwnForm;
  ItemFile file{path, rules.members};
  TaskItems out{.kind = rules.kind, .own = rules.own, .items = {}};
  std::optional<PiqaLabels> labels;
  if (rules.read == piqa_item) labels.emplace(path);
  each_line(file, [&](std::string_view line) {
    Json object = Json::parse(line, concat(path, ":", file.line));
    if (!object.is_object()) file.refuse("found ", shortened(line, 60), "; wanted an object");
    if (labels) labels->add(file, object);
    const bool text = form == nullptr && object.find("text") != nullptr;
    if (form == nullptr && out.items.empty()) out.kind = text ? TaskKind::kText : TaskKind::kChoices;
    if (form == nullptr && text != (out.kind == TaskKind::kText))
      file.refuse(text ? "is a text" : "has choices", "; the items before it ",
                  text ? "have choices" : "are texts", ", and a file holds one kind");
    out.items.push_back(rules.read(file, object));
    out.items.back().source = labels ? object.dump() : std::string(line);
  });
  if (labels) labels->check_end();
  if (out.items.empty())
    fail(ErrorKind::kData, path, ": holds no item; wanted one a line, with ", file.members);
  return out;
}

std::string hellaswag_text(std::string_view text) {
  const std::string plain = replaced(stripped(text), " [title]", ". ");
  std::string out;
  for (size_t at = 0; at < plain.size();) {
    const size_t end = plain[at] == '[' ? plain.find_first_of("]\n", at) : std::string::npos;
    if (end != std::string::npos && plain[end] == ']') {
      at = end + 1;
    } else {
      out += plain[at++];
    }
  }
  return replaced(out, "  ", " ");
}

}  // namespace megalith
