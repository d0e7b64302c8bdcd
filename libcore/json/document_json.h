#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/json/json_text.h"

namespace megalith {

/// Why a line of a corpus is refused, in the order of the summary.
enum class DocumentFault : uint8_t {
  kInvalidUtf8,
  kByteOrderMark,     // the bytes EF BB BF other than at the beginning of the input
  kSyntax,            // not JSON
  kControlCharacter,  // a raw character below U+0020 inside a string
  kTooDeep,
  kTrailing,       // text after the JSON value
  kNotObject,      // valid JSON, but not an object
  kMissingKey,     // a wanted key is absent
  kWrongType,      // the value of a wanted key is neither a string nor a list of strings
  kLoneSurrogate,  // a wanted string holds half of a \uD800-\uDFFF pair
  kTooLong,        // the line is longer than the user allows; found by the caller
  kRefused         // the tokenizer does not accept the text; found by the caller
};
constexpr size_t kDocumentFaults = 12;
const char* name(DocumentFault fault);  // "invalid UTF-8", for messages

struct DocumentProblem {
  DocumentFault fault;
  size_t byte;         // offset in the line, from 0
  std::string detail;  // what was found at that byte and what was wanted
};

/// How deeply lists and objects may be nested. The limit is Python's default recursion limit, at which
/// json.loads fails as well, so that both reject the same documents.
constexpr size_t kMaxDocumentDepth = 1000;

/// Extracts the texts of wanted keys from one line of loose JSON, with the semantics of Python's
/// json.loads(line)[key] on strictly decoded UTF-8: the last of duplicate keys wins, escaped key names match,
/// NaN, Infinity and numbers of any size are accepted, raw control characters and trailing text are not. The
/// parser is stricter than Python in two ways: it refuses a lone surrogate in a wanted string (in Megatron
/// the tokenizer fails on it), and nesting deeper than kMaxDocumentDepth. It adds one thing: if the line has
/// no key "meta.text", the wanted key "meta.text" means key "text" of the object under key "meta".
///
/// Why not simdjson: its on-demand parser does not unescape key names, find a second duplicate or look at the
/// rest of the line, and its DOM parser refuses NaN. It could serve only the usual lines, and this parser
/// would still be needed for all others. This parser makes a single pass. Inside strings it looks at many
/// bytes at a time; it decodes wanted strings on the way (json/json_text.h) and builds nothing for other
/// values. (simdjson is used to validate the UTF-8.)
///
/// Not thread-safe; use one per worker. Keeps its memory from line to line.
class DocumentParser {
 public:
  explicit DocumentParser(std::vector<std::string> keys);
  DocumentParser(const DocumentParser&) = delete;  // places_ refers to names_
  DocumentParser& operator=(const DocumentParser&) = delete;
  DocumentParser(DocumentParser&&) = default;

  /// In a line longer than this, strings are decoded in place, so that they are in memory only once.
  static constexpr size_t kDecodedInPlace = size_t{1} << 20;

  /// Parses `line`, which has no line end. Returns the first problem; if there is none, texts() may be read.
  /// A valid line of more than kDecodedInPlace bytes is changed: the escapes in its wanted strings are
  /// decoded in place, since a copy would double its memory. Other lines stay as they are.
  std::optional<DocumentProblem> parse(std::span<char> line);

  /// The texts of the value of key number `key`: one for a string, one per element of a list of strings. A
  /// text is a view of the parsed line or, if it had escapes and the line was not changed, of the parser's
  /// memory, which is valid until the next parse().
  std::span<const std::string_view> texts(size_t key) const { return slots_[chosen_[key]].texts; }
  bool is_list(size_t key) const { return slots_[chosen_[key]].kind == Kind::kList; }

 private:
  enum class Kind : uint8_t { kAbsent, kString, kList, kObject, kNumber, kTrue, kFalse, kNull };
  enum class State : uint8_t { kValue, kKey, kAfterValue, kDone };
  struct Literal {  // a string in the line, without its quotes
    char* begin = nullptr;
    char* end = nullptr;
    bool escaped = false;
    // where the \u escape of a lone surrogate begins; null if there is none
    const char* lone_surrogate = nullptr;
  };
  struct Slot {  // the value of the last occurrence of a wanted key
    explicit Slot(std::string name) : key(std::move(name)) {}
    std::string key;
    Kind kind = Kind::kAbsent;
    const char* at = nullptr;      // where the value begins
    Kind element = Kind::kAbsent;  // kind and place of the first element of a list that is not a string
    const char* element_at = nullptr;
    std::vector<Literal> literals;
    std::vector<std::string_view> texts;
  };
  /// The names that lead to wanted keys are a tree: a key with one name is a child of the root, one that is
  /// split at its dots is deeper. So a name of a line is looked up once, however many keys are wanted.
  struct Place {
    std::unordered_map<std::string_view, size_t> children = {};  // name: its number in places_
    std::vector<size_t> slots = {};   // all that are here or deeper, which a key that comes again empties
    std::optional<size_t> slot = {};  // the slot whose key ends here
  };
  static const char* article_and_name(Kind kind);

  void add_place(size_t slot, const std::vector<std::string>& path);
  void start(std::span<char> line);
  bool check_bytes();
  bool scan();
  bool scan_value(State& state);
  bool scan_key(State& state);
  bool scan_after_value(State& state);
  bool open(bool object, State& state);
  void close(State& state);
  bool scan_string(Literal& literal);
  bool wants_string() const;
  bool scan_text(Literal& literal);
  bool scan_escape(char*& at, Literal& literal);
  bool scan_other();
  bool skip_word(std::string_view word);
  bool skip_number();
  void skip_blanks();
  void note(Kind kind, const char* at, const Literal* literal = nullptr);
  Slot* enter_key(const Literal& key);
  std::string_view text_of(const Literal& key);
  bool check_slots();
  bool check_slot(const Slot& slot);
  bool reject_missing(const std::string& key);
  void decode(Slot& slot);
  bool reject(DocumentFault fault, const char* at, std::string detail);
  bool reject_unexpected(const char* wanted);
  bool reject_control(const char* at);

  const JsonText& json_text_;
  // Decoded texts of the line, end to end. The capacity is kept, so that most lines allocate nothing.
  ByteBuffer decoded_;
  char* decoded_end_ = nullptr;
  std::vector<Slot> slots_;     // one for each key, then one for each key with a path of several names
  std::vector<size_t> chosen_;  // for each key, the slot that has its value in this line
  std::vector<std::optional<size_t>> paths_;  // for each key, the slot of its path, if it has one
  size_t deepest_ = 1;                        // number of names in the longest path
  std::deque<std::string> names_;             // what the keys of Place::children refer to
  std::vector<Place> places_;                 // the first is the root
  std::vector<size_t> entered_;      // the root, then the places to which the keys of the open objects lead
  std::string key_text_;             // an escaped key, decoded
  std::vector<Literal> seen_keys_;   // the first few keys of the top level, for messages
  bool objects_[kMaxDocumentDepth];  // for each open level, whether it is an object
  size_t depth_ = 0;
  Kind root_ = Kind::kAbsent;
  Slot* slot_ = nullptr;   // the wanted key whose value is being read
  size_t slot_depth_ = 1;  // how many levels are open around that key
  char* begin_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
  std::optional<DocumentProblem> problem_;
};

}  // namespace megalith
