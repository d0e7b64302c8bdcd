#include "libcore/text/hf_json.h"

#include <filesystem>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "libcore/text/vocabulary.h"

namespace megalith {
namespace {

/// Reads one tokenizer.json; every complaint begins with its path.
class HfReader {
 public:
  explicit HfReader(std::string path) : path_(std::move(path)), root_(Json::load(path_)) {}

  ByteLevelModel read() {
    if (!root_.is_object()) refuse("the file", root_, "wanted an object");
    check_stages();
    const Json& model = member(root_, "model");
    check_model(model);
    Vocabulary vocabulary(member(model, "vocab"), path_);
    ByteLevelModel out;
    out.name = "HuggingFaceTokenizer";
    out.merges = read_merges(member(model, "merges"), vocabulary);
    read_added(vocabulary, out);
    vocabulary.fill(out);
    out.eod = vocabulary.find(end_of_text()).value_or(-1);
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const Json& found, const std::string& wanted) const {
    fail(ErrorKind::kData, path_, ": ", what, " is ", found.dump().substr(0, 200),
         ", which is not supported; ", wanted);
  }

  const Json& member(const Json& object, const char* key) const {
    const Json* value = object.find(key);
    if (!value) fail(ErrorKind::kData, path_, ": no ", quote(key), "; this is not a whole tokenizer.json");
    return *value;
  }

  bool flag(const Json& object, const char* key) const {
    const Json* value = object.find(key);
    if (!value || value->is_null()) return false;
    if (!value->is_bool()) refuse(quote(key), *value, "wanted true or false");
    return value->as_bool();
  }

  static bool absent(const Json* value) { return !value || value->is_null(); }

  static bool is_of_type(const Json& value, const char* type) {
    const Json* found = value.find("type");
    return found && found->is_string() && found->as_string() == type;
  }

  /// A template without special tokens leaves a single text as it is; transformers 5 writes one.
  static bool adds_nothing(const Json& processor) {
    const Json* tokens = processor.find("special_tokens");
    return is_of_type(processor, "TemplateProcessing") && tokens && tokens->is_object() &&
           tokens->as_object().empty();
  }

  /// What stands around the model: none of it may change the ids in a way that is not done here.
  void check_stages() const {
    const Json* normalizer = root_.find("normalizer");
    if (!absent(normalizer)) refuse("\"normalizer\"", *normalizer, "wanted none (null)");
    const Json& pre = member(root_, "pre_tokenizer");
    if (!is_of_type(pre, "ByteLevel")) refuse("\"pre_tokenizer\"", pre, "wanted type \"ByteLevel\"");
    // Both are true where the file leaves them out.
    const Json* prefix = pre.find("add_prefix_space");
    if (!prefix || *prefix != Json(false))
      refuse("\"pre_tokenizer\"", pre, "wanted \"add_prefix_space\": false");
    const Json* regex = pre.find("use_regex");
    if (regex && *regex != Json(true)) refuse("\"pre_tokenizer\"", pre, "wanted \"use_regex\": true");
    for (const char* stage : {"post_processor", "decoder"}) {
      const Json* value = root_.find(stage);
      if (!absent(value) && !is_of_type(*value, "ByteLevel") && !adds_nothing(*value))
        refuse(quote(stage), *value, "wanted none (null) or type \"ByteLevel\"");
    }
  }

  void check_model(const Json& model) const {
    const Json* type = model.find("type");
    if (type && *type != Json("BPE")) refuse("model \"type\"", *type, "wanted \"BPE\"");
    const Json* dropout = model.find("dropout");
    if (!absent(dropout) && !(dropout->is_number() && dropout->as_double() == 0))
      refuse("model \"dropout\"", *dropout, "wanted none (null): ids would be random");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json* value = model.find(key);
      if (!absent(value) && *value != Json(""))
        refuse(concat("model ", quote(key)), *value, "wanted none (null)");
    }
    for (const char* key : {"byte_fallback", "ignore_merges"})
      if (flag(model, key)) refuse(concat("model ", quote(key)), Json(true), "wanted false");
  }

  /// Each is "left right" (until tokenizers 0.19) or ["left", "right"].
  std::vector<BytePairEncoder::Merge> read_merges(const Json& merges, const Vocabulary& vocabulary) const {
    if (!merges.is_array()) refuse("model \"merges\"", merges, "wanted a list");
    std::vector<BytePairEncoder::Merge> out;
    out.reserve(merges.as_array().size());
    for (const Json& merge : merges.as_array()) {
      const std::string where = concat(path_, ": merge ", out.size());
      std::vector<std::string> sides;
      if (merge.is_string()) sides = split(merge.as_string(), ' ');
      if (merge.is_array())
        for (const Json& side : merge.as_array())
          sides.push_back(side.is_string() ? side.as_string() : std::string());
      if (sides.size() != 2)
        fail(ErrorKind::kData, where, " is ", merge.dump(),
             ", wanted two tokens, \"left right\" or [\"left\", \"right\"]");
      out.push_back(vocabulary.merge(sides[0], sides[1], where));
    }
    return out;
  }

  void read_added(Vocabulary& vocabulary, ByteLevelModel& out) const {
    const Json* list = root_.find("added_tokens");
    if (absent(list)) return;
    if (!list->is_array()) refuse("\"added_tokens\"", *list, "wanted a list");
    for (const Json& entry : list->as_array()) {
      const Json& text = member(entry, "content");
      const Json& id = member(entry, "id");
      if (!text.is_string() || text.as_string().empty() || !id.is_int())
        refuse("an added token", entry, "wanted a \"content\" and an integer \"id\"");
      if (flag(entry, "single_word")) refuse("an added token", entry, "wanted \"single_word\": false");
      place_added(vocabulary, text.as_string(), id.as_int());
      auto& group = flag(entry, "normalized") ? out.normalized_added : out.raw_added;
      group.push_back({.text = text.as_string(),
                       .id = static_cast<int32_t>(id.as_int()),
                       .takes_space_before = flag(entry, "lstrip"),
                       .takes_space_after = flag(entry, "rstrip")});
    }
  }

  /// Hugging Face takes the id of the vocabulary, or the next free one, whatever the entry says: files where
  /// that differs would mean one thing here and another there.
  void place_added(Vocabulary& vocabulary, const std::string& text, int64_t id) const {
    const auto known = vocabulary.find(text);
    if (!known && id == static_cast<int64_t>(vocabulary.size())) {
      vocabulary.add(text, id);
    } else if (known.value_or(static_cast<int32_t>(vocabulary.size())) != id) {
      fail(
          ErrorKind::kData, path_, ": added token ", quote(text), " has id ", id, ", wanted ",
          known ? concat(*known, " as in the vocabulary") : concat(vocabulary.size(), ", the next free one"));
    }
  }

  std::string end_of_text() const {
    const auto config_path = std::filesystem::path(path_).parent_path() / "tokenizer_config.json";
    if (!file_exists(config_path.string())) return "<|endoftext|>";
    const Json config = Json::load(config_path.string());
    const Json* token = config.find("eos_token");
    if (token && token->is_object()) token = token->find("content");
    return token && token->is_string() ? token->as_string() : "<|endoftext|>";
  }

  std::string path_;
  Json root_;
};

}  // namespace

ByteLevelModel read_hf_tokenizer(const std::string& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  return HfReader(is_folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path).read();
}

}  // namespace megalith
