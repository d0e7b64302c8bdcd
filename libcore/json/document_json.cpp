#include "libcore/json/document_json.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/json/json_escapes.h"
#include "libcore/json/json_text_inl.h"

namespace megalith {
namespace {

constexpr size_t kSeenKeys = 5;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

char* after_digits(char* at, const char* end) {
  while (at < end && is_digit(*at)) ++at;
  return at;
}
/// Returns the end of the exponent that begins at `at`; `at` if there is none.
char* after_exponent(char* at, const char* end) {
  if (at == end || (*at != 'e' && *at != 'E')) return at;
  char* digits = at + 1;
  if (digits < end && (*digits == '+' || *digits == '-')) ++digits;
  return digits < end && is_digit(*digits) ? after_digits(digits, end) : at;
}

/// The character at `at`, for a message. One byte if it is not UTF-8.
std::string_view character(const char* at, const char* end) {
  size_t n = 1;
  while (at + n < end && n < 4 && continues_character(at[n])) ++n;
  return {at, n};
}

}  // namespace

const char* name(DocumentFault fault) {
  switch (fault) {
    case DocumentFault::kInvalidUtf8:
      return "invalid UTF-8";
    case DocumentFault::kByteOrderMark:
      return "byte order mark inside the input";
    case DocumentFault::kSyntax:
      return "malformed JSON";
    case DocumentFault::kControlCharacter:
      return "raw control character in a string";
    case DocumentFault::kTooDeep:
      return "nested too deeply";
    case DocumentFault::kTrailing:
      return "text after the JSON value";
    case DocumentFault::kNotObject:
      return "not a JSON object";
    case DocumentFault::kMissingKey:
      return "missing key";
    case DocumentFault::kWrongType:
      return "value is not text";
    case DocumentFault::kLoneSurrogate:
      return "lone surrogate";
    case DocumentFault::kTooLong:
      return "too long";
    case DocumentFault::kRefused:
      return "refused by the tokenizer";
  }
  return "";
}

const char* DocumentParser::article_and_name(Kind kind) {
  switch (kind) {
    case Kind::kAbsent:
      return "nothing";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kObject:
      return "an object";
    case Kind::kNumber:
      return "a number";
    case Kind::kTrue:
      return "true";
    case Kind::kFalse:
      return "false";
    case Kind::kNull:
      return "null";
  }
  return "";
}

DocumentParser::DocumentParser(std::vector<std::string> keys)
    : json_text_(json_text(chosen_isa())), places_(1) {
  for (const std::string& key : keys) {
    add_place(slots_.size(), {key});
    slots_.emplace_back(key);
    chosen_.push_back(chosen_.size());
  }
  paths_.resize(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    const std::vector<std::string> path = split(keys[k], '.');
    if (path.size() == 1) continue;
    paths_[k] = slots_.size();
    deepest_ = std::max(deepest_, path.size());
    add_place(slots_.size(), path);
    slots_.emplace_back(std::move(keys[k]));
  }
}

void DocumentParser::add_place(size_t slot, const std::vector<std::string>& path) {
  size_t at = 0;
  for (const std::string& name : path) {
    const auto found = places_[at].children.find(name);
    if (found != places_[at].children.end()) {
      at = found->second;
    } else {
      const std::string_view kept = names_.emplace_back(name);
      places_[at].children.emplace(kept, places_.size());
      at = places_.size();
      places_.emplace_back();
    }
    places_[at].slots.push_back(slot);
  }
  places_[at].slot = slot;
}

std::optional<DocumentProblem> DocumentParser::parse(std::span<char> line) {
  start(line);
  if (!check_bytes() || !scan() || !check_slots()) return std::move(problem_);
  for (const size_t slot : chosen_) decode(slots_[slot]);
  return std::nullopt;
}

void DocumentParser::start(std::span<char> line) {
  begin_ = at_ = line.data();
  end_ = begin_ + line.size();
  depth_ = 0;
  root_ = Kind::kAbsent;
  slot_ = nullptr;
  entered_.assign(1, 0);
  seen_keys_.clear();
  problem_.reset();
  if (line.size() <= kDecodedInPlace && decoded_.capacity() < line.size() + JsonText::kSlack)
    decoded_.reserve(std::max(2 * decoded_.capacity(), line.size() + JsonText::kSlack));
  decoded_end_ = decoded_.data();
  for (Slot& slot : slots_) {
    slot.kind = slot.element = Kind::kAbsent;
    slot.literals.clear();
    slot.texts.clear();
  }
}

/// Reports invalid UTF-8 before any other problem, as Python does, which decodes the line before json.loads
/// sees it.
bool DocumentParser::check_bytes() {
  const std::string_view line(begin_, static_cast<size_t>(end_ - begin_));
  if (const size_t good = valid_utf8_prefix(line); good < line.size())
    return reject(DocumentFault::kInvalidUtf8, begin_ + good, "found " + quote(line.substr(good, 1)));
  if (line.starts_with(kUtf8ByteOrderMark))
    return reject(DocumentFault::kByteOrderMark, begin_, "it may only be the first bytes of an input");
  return true;
}

/// Scans the line, one value, key or separator per iteration. Open lists and objects are recorded in objects_
/// instead of by recursion, so that nesting takes no stack.
bool DocumentParser::scan() {
  State state = State::kValue;
  bool good = true;
  while (good && state != State::kDone) {
    skip_blanks();
    if (state == State::kValue)
      good = scan_value(state);
    else if (state == State::kKey)
      good = scan_key(state);
    else
      good = scan_after_value(state);
  }
  if (!good) return false;
  skip_blanks();
  if (at_ != end_)
    return reject(DocumentFault::kTrailing, at_,
                  "found " + quote(character(at_, end_)) + ", wanted the end of the line");
  return true;
}

bool DocumentParser::scan_value(State& state) {
  const char c = at_ < end_ ? *at_ : '\0';
  if (c == '{' || c == '[') return open(c == '{', state);
  state = State::kAfterValue;
  if (c != '"') return scan_other();
  const char* const begin = at_;
  Literal literal;
  if (!(wants_string() ? scan_text(literal) : scan_string(literal))) return false;
  note(Kind::kString, begin, &literal);
  return true;
}

bool DocumentParser::open(bool object, State& state) {
  const Kind kind = object ? Kind::kObject : Kind::kList;
  if (depth_ == kMaxDocumentDepth)
    return reject(DocumentFault::kTooDeep, at_,
                  concat("more than ", kMaxDocumentDepth, " nested lists and objects"));
  note(kind, at_);
  objects_[depth_++] = object;
  ++at_;
  skip_blanks();
  if (at_ < end_ && *at_ == (object ? '}' : ']'))
    close(state);
  else
    state = object ? State::kKey : State::kValue;
  return true;
}

void DocumentParser::close(State& state) {
  ++at_;
  --depth_;
  state = State::kAfterValue;
}

bool DocumentParser::scan_key(State& state) {
  if (at_ == end_ || *at_ != '"') return reject_unexpected("a key in double quotes");
  Literal key;
  if (!scan_string(key)) return false;
  if (depth_ <= deepest_) slot_ = enter_key(key);
  if (depth_ == 1 && seen_keys_.size() < kSeenKeys) seen_keys_.push_back(key);
  skip_blanks();
  if (at_ == end_ || *at_ != ':') return reject_unexpected("':'");
  ++at_;
  state = State::kValue;
  return true;
}

bool DocumentParser::scan_after_value(State& state) {
  if (depth_ == 0) {
    state = State::kDone;
    return true;
  }
  const bool object = objects_[depth_ - 1];
  const char c = at_ < end_ ? *at_ : '\0';
  if (c == (object ? '}' : ']')) {
    close(state);
    return true;
  }
  if (c != ',') return reject_unexpected(object ? "',' or '}'" : "',' or ']'");
  ++at_;
  state = object ? State::kKey : State::kValue;
  return true;
}

/// Scans a string: at_ is at the opening quote and afterwards behind the closing one.
bool DocumentParser::scan_string(Literal& literal) {
  const char* const opening = at_;
  char* at = at_ + 1;
  literal.begin = at;
  for (;;) {
    at = skip_plain(at, end_, literal.escaped);
    if (at == end_) return reject(DocumentFault::kSyntax, opening, "the string that begins here has no end");
    if (*at == '"') break;
    if (*at != '\\') return reject_control(at);
    do {
      if (!scan_escape(at, literal)) return false;
    } while (end_ - at > 1 && at[0] == '\\' && at[1] == 'u');
  }
  literal.end = at;
  at_ = at + 1;
  return true;
}

/// Whether a string that begins here is the value of a wanted key or an element of that value, and the line
/// is short. Such a string is decoded during the scan, which saves a second pass.
bool DocumentParser::wants_string() const {
  if (!slot_ || end_ - begin_ > static_cast<ptrdiff_t>(kDecodedInPlace)) return false;
  return depth_ == slot_depth_ || (depth_ == slot_depth_ + 1 && slot_->kind == Kind::kList);
}

/// As scan_string(), but decodes the string during the scan. `literal` is then the decoded text. It is in the
/// line if the string has no escapes, otherwise in decoded_.
bool DocumentParser::scan_text(Literal& literal) {
  const char* const opening = at_;
  literal.begin = at_ + 1;
  JsonText::Stop stop{json_text_.find_special(at_ + 1, end_), literal.begin};
  const auto plain = static_cast<size_t>(stop.at - literal.begin);
  const bool escaped = stop.at < end_ && *stop.at == '\\';
  if (escaped) {
    std::memcpy(decoded_end_, literal.begin, plain);
    literal.begin = decoded_end_;
  }
  stop.out = literal.begin + plain;
  while (escaped) {
    stop = json_text_.decode(stop.at, end_, stop.out);
    if (stop.at == end_ || *stop.at != '\\') break;
    const char* from = stop.at;  // it is at a surrogate or an invalid escape
    char* at = begin_ + (stop.at - begin_);
    if (!scan_escape(at, literal)) return false;
    decode_unit(from, end_, stop.out);
    stop.at = at;
  }
  if (stop.at == end_)
    return reject(DocumentFault::kSyntax, opening, "the string that begins here has no end");
  if (*stop.at != '"') return reject_control(stop.at);
  literal.end = stop.out;
  literal.escaped = false;
  if (escaped) decoded_end_ = stop.out;
  at_ = begin_ + (stop.at - begin_) + 1;
  return true;
}

bool DocumentParser::reject_control(const char* at) {
  return reject(DocumentFault::kControlCharacter, at, "found " + quote({at, 1}) + ", wanted it escaped");
}

/// Scans a \u escape; rejects an invalid escape.
bool DocumentParser::scan_escape(char*& at, Literal& literal) {
  literal.escaped = true;
  const char* const backslash = at;
  if (end_ - at < 2 || at[1] != 'u')
    return reject(DocumentFault::kSyntax, backslash, "no JSON escape begins with this backslash");
  const uint32_t unit = read_hex4(at + 2, end_);
  if (unit == kNoUnit) return reject(DocumentFault::kSyntax, backslash, "\\u needs four hexadecimal digits");
  at += 6;
  if (is_high_surrogate(unit) && read_low_half(at, end_))
    at += 6;
  else if ((is_high_surrogate(unit) || is_low_surrogate(unit)) && !literal.lone_surrogate)
    literal.lone_surrogate = backslash;
  return true;
}

/// Scans a number or a word such as "true". A number ends where its grammar ends, so that any other character
/// after it is reported as unexpected.
bool DocumentParser::scan_other() {
  const char* const begin = at_;
  Kind kind = Kind::kNumber;
  if (skip_word("null"))
    kind = Kind::kNull;
  else if (skip_word("true"))
    kind = Kind::kTrue;
  else if (skip_word("false"))
    kind = Kind::kFalse;
  else if (!skip_word("NaN") && !skip_word("Infinity") && !skip_word("-Infinity") && !skip_number())
    return reject_unexpected("a JSON value");
  note(kind, begin);
  return true;
}

bool DocumentParser::skip_word(std::string_view word) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool DocumentParser::skip_number() {
  char* at = at_;
  if (at < end_ && *at == '-') ++at;
  if (at == end_ || !is_digit(*at)) return false;
  at = *at == '0' ? at + 1 : after_digits(at, end_);
  if (end_ - at >= 2 && *at == '.' && is_digit(at[1])) at = after_digits(at + 1, end_);
  at_ = after_exponent(at, end_);
  return true;
}

void DocumentParser::skip_blanks() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
}

/// Records a value of type `kind` that begins at `at`, inside depth_ open levels. Only three kinds of values
/// are recorded: the root, the value of a wanted key, and the elements of that value if it is a list.
void DocumentParser::note(Kind kind, const char* at, const Literal* literal) {
  if (depth_ == 0) root_ = kind;
  if (!slot_) return;
  if (depth_ == slot_depth_) {
    slot_->kind = kind;
    slot_->at = at;
    if (literal) slot_->literals.push_back(*literal);
  } else if (depth_ == slot_depth_ + 1 && slot_->kind == Kind::kList) {
    if (literal) {
      slot_->literals.push_back(*literal);
    } else if (slot_->element == Kind::kAbsent) {
      slot_->element = kind;
      slot_->element_at = at;
    }
  }
}

std::string_view DocumentParser::text_of(const Literal& key) {
  const std::string_view text(key.begin, static_cast<size_t>(key.end - key.begin));
  if (!key.escaped) return text;
  key_text_.resize(text.size());
  key_text_.resize(static_cast<size_t>(unescape(key.begin, key.end, key_text_.data()) - key_text_.data()));
  return key_text_;
}

/// Returns the slot for the value of this key; null if the key is not wanted. Empties the slots to which the
/// key leads, since the last of duplicate keys wins.
DocumentParser::Slot* DocumentParser::enter_key(const Literal& key) {
  slot_depth_ = depth_;
  if (entered_.size() > depth_) entered_.resize(depth_);
  if (entered_.size() < depth_) return nullptr;  // the objects around are not under wanted names
  const Place& around = places_[entered_.back()];
  const auto child = around.children.find(text_of(key));
  if (child == around.children.end()) return nullptr;
  entered_.push_back(child->second);
  const Place& place = places_[child->second];
  for (const size_t i : place.slots) {
    slots_[i].kind = slots_[i].element = Kind::kAbsent;
    slots_[i].literals.clear();
  }
  return place.slot ? &slots_[*place.slot] : nullptr;
}

bool DocumentParser::check_slots() {
  if (root_ != Kind::kObject)
    return reject(DocumentFault::kNotObject, begin_,
                  concat("found ", article_and_name(root_), ", wanted {…}"));
  for (size_t k = 0; k < chosen_.size(); ++k) {
    const bool absent = slots_[k].kind == Kind::kAbsent;
    chosen_[k] = absent && paths_[k] ? *paths_[k] : k;
    if (!check_slot(slots_[chosen_[k]])) return false;
  }
  return true;
}

namespace {
/// The key of a line that is probably meant by one that is not there: one of a similar name, one by which
/// texts are usual, or the only one. Nothing if none stands out.
std::optional<std::string> meant_key(std::string_view wanted, const std::vector<std::string>& seen) {
  if (auto near = nearest(wanted, seen)) return near;
  for (const char* usual : {"text", "content", "body", "document", "raw_content", "article", "code"})
    if (std::find(seen.begin(), seen.end(), usual) != seen.end()) return usual;
  return seen.size() == 1 ? std::optional(seen[0]) : std::nullopt;
}
}  // namespace

bool DocumentParser::reject_missing(const std::string& key) {
  std::vector<std::string> seen, quoted;
  for (const Literal& one : seen_keys_) {
    seen.emplace_back(one.begin, static_cast<size_t>(one.end - one.begin));
    quoted.push_back(quote(seen.back()));
  }
  const auto meant = meant_key(key, seen);
  return reject(DocumentFault::kMissingKey, begin_,
                concat("no ", quote(key),
                       seen.empty() ? "; the object is empty" : "; the line has " + join(quoted, ", "),
                       meant ? "; give --json-keys " + shell_word(*meant) : ""));
}

bool DocumentParser::check_slot(const Slot& slot) {
  if (slot.kind == Kind::kAbsent) return reject_missing(slot.key);
  if (slot.kind != Kind::kString && slot.kind != Kind::kList)
    return reject(DocumentFault::kWrongType, slot.at,
                  concat(quote(slot.key), " is ", article_and_name(slot.kind),
                         ", wanted a string or a list of strings"));
  if (slot.element != Kind::kAbsent)
    return reject(DocumentFault::kWrongType, slot.element_at,
                  concat(quote(slot.key), " is a list that holds ", article_and_name(slot.element),
                         ", wanted only strings"));
  for (const Literal& literal : slot.literals) {
    if (literal.lone_surrogate)
      return reject(DocumentFault::kLoneSurrogate, literal.lone_surrogate,
                    concat(std::string_view(literal.lone_surrogate, 6), " appears without its other half"));
  }
  return true;
}

void DocumentParser::decode(Slot& slot) {
  for (const Literal& literal : slot.literals) {
    const char* end = literal.escaped ? unescape(literal.begin, literal.end, literal.begin) : literal.end;
    slot.texts.emplace_back(literal.begin, static_cast<size_t>(end - literal.begin));
  }
}

bool DocumentParser::reject(DocumentFault fault, const char* at, std::string detail) {
  problem_ = {fault, static_cast<size_t>(at - begin_), std::move(detail)};
  return false;
}

bool DocumentParser::reject_unexpected(const char* wanted) {
  if (at_ == end_) return reject(DocumentFault::kSyntax, at_, concat("the line ends, wanted ", wanted));
  return reject(DocumentFault::kSyntax, at_,
                concat("found ", quote(character(at_, end_)), ", wanted ", wanted));
}

}  // namespace megalith
