#include "libcore/text/hf_json.h"

#include <algorithm>
#include <filesystem>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "libcore/text/hf_place.h"
#include "libcore/text/hf_stages.h"
#include "libcore/text/hf_tokenizer.h"
#include "libcore/text/vocabulary.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";
constexpr const char* kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's blank

/// "eos_token" of tokenizer_config.json beside the file, else the usual text.
std::string end_of_text(const std::string& tokenizer_json) {
  const auto path = std::filesystem::path(tokenizer_json).parent_path() / "tokenizer_config.json";
  if (!file_exists(path.string())) return kEndOfText;
  const Json config = Json::load(path.string());
  const Json* token = config.find("eos_token");
  if (token && token->is_object()) token = token->find("content");
  return token && token->is_string() ? token->as_string() : kEndOfText;
}

void check_model(const HfPlace& model) {
  // Files of tokenizers before 0.5 have no "type".
  if (const auto type = model.find("type"); type && type->text() != "BPE") type->refuse("\"BPE\"");
  if (const auto dropout = model.find("dropout"))
    if (!dropout->json().is_number() || dropout->json().as_double() != 0)
      dropout->refuse("none (null): ids would be random");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto affix = model.find(key); affix && !affix->text().empty()) affix->refuse("none (null)");
}

/// Each is "left right" (until tokenizers 0.19) or ["left", "right"].
std::vector<BytePairEncoder::Merge> read_merges(const HfPlace& merges, const Vocabulary& vocabulary) {
  if (!merges.json().is_array()) merges.refuse("a list");
  std::vector<BytePairEncoder::Merge> out;
  out.reserve(merges.json().as_array().size());
  for (const Json& merge : merges.json().as_array()) {
    const std::string where = concat(merges.file(), ": model.merges[", out.size(), "]");
    if (merge.is_array() && merge.as_array().size() == 2 && merge.as_array()[0].is_string() &&
        merge.as_array()[1].is_string()) {
      out.push_back(
          vocabulary.merge(merge.as_array()[0].as_string(), merge.as_array()[1].as_string(), where));
      continue;
    }
    const std::vector<std::string> sides =
        merge.is_string() ? split(merge.as_string(), ' ') : std::vector<std::string>();
    if (sides.size() != 2)
      fail(ErrorKind::kData, where, " is ", merge.dump(),
           ", wanted two tokens, \"left right\" or [\"left\", \"right\"]");
    out.push_back(vocabulary.merge(sides[0], sides[1], where));
  }
  return out;
}

/// Hugging Face takes the id of the vocabulary, or the next free one, whatever the entry says: files where
/// that differs would mean one thing here and another there.
int32_t place_added(Vocabulary& vocabulary, const HfPlace& entry) {
  const std::string& text = entry.at("content").text();
  const int64_t id = entry.at("id").integer();
  if (text.empty()) entry.at("content").refuse("a text");
  const auto known = vocabulary.find(text);
  if (!known && id == static_cast<int64_t>(vocabulary.size())) {
    vocabulary.add(text, id);
  } else if (known.value_or(static_cast<int32_t>(vocabulary.size())) != id) {
    fail(ErrorKind::kData, entry.file(), ": added token ", quote(text), " has id ", id, ", wanted ",
         known ? concat(*known, " as in the vocabulary") : concat(vocabulary.size(), ", the next free one"));
  }
  return static_cast<int32_t>(id);
}

void read_added(const HfPlace& root, Vocabulary& vocabulary, ByteLevelModel& out) {
  const auto list = root.find("added_tokens");
  if (!list) return;
  for (const HfPlace& entry : list->list()) {
    const AddedToken token = {.text = entry.at("content").text(),
                              .id = place_added(vocabulary, entry),
                              .takes_space_before = entry.flag("lstrip", false),
                              .takes_space_after = entry.flag("rstrip", false),
                              .only_alone = entry.flag("single_word", false)};
    for (auto* group : {&out.raw_added, &out.normalized_added})  // of two entries the later one counts
      std::erase_if(*group, [&](const AddedToken& t) { return t.id == token.id; });
    (entry.flag("normalized", false) ? out.normalized_added : out.raw_added).push_back(token);
  }
}

CharacterIds::Unknown read_unknown(const HfPlace& model, const Vocabulary& vocabulary) {
  CharacterIds::Unknown out;
  out.byte_fallback = model.flag("byte_fallback", false);
  out.fuse = model.flag("fuse_unk", false);
  const auto token = model.find("unk_token");
  if (!token) return out;
  out.id = vocabulary.find(token->text());
  if (!out.id) token->refuse("a token of the vocabulary");
  return out;
}

/// Whether no merge goes from another character on to a mark: then a text may be cut before each run of
/// marks.
bool cut_at_marks(const ByteLevelModel& model, const std::vector<std::string>& texts) {
  const std::string mark = kMark;
  if (model.ignore_merges || std::find(texts.begin(), texts.end(), mark) == texts.end()) return false;
  return std::none_of(model.merges.begin(), model.merges.end(), [&](const BytePairEncoder::Merge& merge) {
    const std::string& text = texts[static_cast<size_t>(merge.merged)];
    size_t at = 0;
    while (text.compare(at, mark.size(), mark) == 0) at += mark.size();
    return text.find(mark, at) != std::string::npos;
  });
}

/// Reads one tokenizer.json.
class HfReader {
 public:
  explicit HfReader(std::string path)
      : path_(std::move(path)), json_(Json::load(path_)), root_(json_, path_) {}

  std::unique_ptr<Tokenizer> read(bool special_tokens) {
    if (!json_.is_object()) root_.refuse("an object");
    root_.at("pre_tokenizer");
    pretokenizer_ = read_hf_pretokenizer(root_);
    parts_.normalizer = read_hf_normalizer(root_);
    parts_.metaspace = pretokenizer_.metaspace;
    parts_.decoder = read_hf_decoder(root_);
    read_model();
    const HfTemplate around = read_hf_post_processor(root_);
    if (special_tokens) parts_.around = around;
    if (needs_only_its_model()) return std::make_unique<ByteLevelTokenizer>(std::move(parts_.model));
    return std::make_unique<HfTokenizer>(std::move(parts_));
  }

 private:
  void read_model() {
    const HfPlace model = root_.at("model");
    check_model(model);
    Vocabulary vocabulary(model.at("vocab").json(), path_);
    ByteLevelModel& out = parts_.model;
    out.name = "HuggingFaceTokenizer";
    out.merges = read_merges(model.at("merges"), vocabulary);
    out.ignore_merges = model.flag("ignore_merges", false);
    read_added(root_, vocabulary, out);
    parts_.texts = vocabulary.texts();
    if (pretokenizer_.byte_level) {
      vocabulary.fill(out);
      out.rules.clear();
    } else {
      out.tokens = parts_.texts;
      const CharacterIds::Unknown unknown = read_unknown(model, vocabulary);
      out.characters.emplace(out.tokens, unknown);
      out.rules = concat("characters, unknown ", unknown.id.value_or(-1), unknown.fuse ? " fused" : "",
                         unknown.byte_fallback ? " or bytes" : "");
    }
    choose_pretokens(out);
    out.eod = vocabulary.find(end_of_text(path_)).value_or(-1);
  }

  void choose_pretokens(ByteLevelModel& out) {
    std::vector<SplitPattern> patterns = pretokenizer_.patterns;
    if (pretokenizer_.metaspace && pretokenizer_.metaspace->split)
      patterns.push_back(mark_pattern(pretokenizer_.metaspace->mark, true));
    for (const SplitPattern& pattern : patterns) out.rules += (out.rules.empty() ? "" : "; ") + pattern.name;
    // Not a rule of the file: merging gives the same ids for the parts.
    if (patterns.empty() && !pretokenizer_.byte_level && cut_at_marks(out, parts_.texts))
      patterns.push_back(mark_pattern(kMark, false));
    out.find_pretokens = pretokenizer(std::move(patterns));
  }

  /// GPT-2's way, where a ByteLevelTokenizer does everything.
  bool needs_only_its_model() const {
    const auto& steps = parts_.decoder.steps();
    return parts_.normalizer.empty() && !parts_.metaspace && parts_.around.before.empty() &&
           parts_.around.after.empty() && steps.size() == 1 &&
           std::holds_alternative<TokenDecoder::ByteLevel>(steps[0]);
  }

  std::string path_;
  Json json_;
  HfPlace root_;
  HfPretokenizer pretokenizer_;
  HfParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_hf_tokenizer(const std::string& path, bool special_tokens) {
  const bool is_folder = std::filesystem::is_directory(path);
  return HfReader(is_folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path)
      .read(special_tokens);
}

}  // namespace megalith
