#include "libcore/checkpoint/torch/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/checkpoint/torch/pickle_machine.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<PickleRef>;
constexpr int kGreatestProtocol = 5;

// Opcodes, by their names in Python's pickletools.
enum Op : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloatText = 'F',
  kIntText = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLongText = 'L',
  kBinInt2 = 'M',
  kNoneOp = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kStringText = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicodeText = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDictOp = 'd',
  kAppends = 'e',
  kGetText = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kListOp = 'l',
  kPutText = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTupleOp = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kBinFloat = 'G',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
  kLong4 = 0x8B,
  kShortBinUnicode = 0x8C,
  kBinUnicode8 = 0x8D,
  kBinBytes8 = 0x8E,
  kEmptySet = 0x8F,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96
};

struct RefusedOp {
  unsigned char op;
  const char* name;
};
constexpr RefusedOp kRefusedOps[] = {
    {'i', "INST"},      {'o', "OBJ"},    {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},     {'P', "PERSID"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {0x92, "NEWOBJ_EX"}};

}  // namespace
// Runs one opcode. Returns false after the last one (STOP).
bool Unpickler::step(unsigned char op) {
  if (op == kStop) return false;
  if (op == kProto) {
    if (const int protocol = number<uint8_t>(); protocol > kGreatestProtocol)
      refuse("pickle protocol ", protocol, "; 0 to ", kGreatestProtocol, " can be read");
    return true;
  }
  if (op == kFrame) {
    if (const auto n = number<uint64_t>(); n > bytes_.size() - at_)
      refuse("a frame of ", n, " bytes, but ", bytes_.size() - at_, " are left");
    return true;
  }
  if (step_scalar(op) || step_text(op) || step_stack(op) || step_container(op) || step_memo(op) ||
      step_object(op))
    return true;
  for (const RefusedOp& refused : kRefusedOps)
    if (refused.op == op) refuse("opcode ", refused.name, ", which torch never writes, is refused");
  refuse("unknown opcode ", static_cast<int>(op));
}

bool Unpickler::step_scalar(unsigned char op) {
  switch (op) {
    case kNoneOp:
      push_whole(Kind::kNone, 0);
      return true;
    case kNewTrue:
    case kNewFalse:
      push_whole(Kind::kBool, op == kNewTrue);
      return true;
    case kBinInt:
      push_whole(Kind::kInt, number<int32_t>());
      return true;
    case kBinInt1:
      push_whole(Kind::kInt, number<uint8_t>());
      return true;
    case kBinInt2:
      push_whole(Kind::kInt, number<uint16_t>());
      return true;
    case kLong1:
      push_long(take(number<uint8_t>()));
      return true;
    case kLong4: {
      const auto n = number<int32_t>();
      if (n < 0) refuse("a negative length");
      push_long(take(static_cast<uint64_t>(n)));
      return true;
    }
    case kIntText:
    case kLongText:
      push_text_int();
      return true;
    case kFloatText:
      push_text_float();
      return true;
    case kBinFloat: {
      const uint64_t swapped = __builtin_bswap64(number<uint64_t>());
      double real = 0;
      std::memcpy(&real, &swapped, sizeof real);
      push(Kind::kFloat, real);
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::step_text(unsigned char op) {
  switch (op) {
    case kBinUnicode:
    case kBinString: {
      const auto n = number<uint32_t>();
      push_text(take(n));
      return true;
    }
    case kShortBinUnicode:
    case kShortBinString: {
      const auto n = number<uint8_t>();
      push_text(take(n));
      return true;
    }
    case kBinUnicode8: {
      const auto n = number<uint64_t>();
      push_text(take(n));
      return true;
    }
    case kBinBytes: {
      const auto n = number<uint32_t>();
      push(Kind::kBytes, take(n));
      return true;
    }
    case kShortBinBytes: {
      const auto n = number<uint8_t>();
      push(Kind::kBytes, take(n));
      return true;
    }
    case kBinBytes8:
    case kByteArray8: {
      const auto n = number<uint64_t>();
      push(Kind::kBytes, take(n));
      return true;
    }
    case kStringText:
      push_quoted();
      return true;
    case kUnicodeText:
      push_text(line());
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_stack(unsigned char op) {
  switch (op) {
    case kMark:
      marks_.push_back(stack_.size());
      return true;
    case kPop:
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return true;
    case kPopMark:
      pop_to_mark();
      return true;
    case kDup:
      stack_.push_back(top());
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_container(unsigned char op) {
  switch (op) {
    case kEmptyList:
      push(Kind::kList, Items{});
      return true;
    case kEmptyTuple:
      push(Kind::kTuple, Items{});
      return true;
    case kEmptyDict:
      push(Kind::kDict, Items{});
      return true;
    case kEmptySet:
      push(Kind::kSet, Items{});
      return true;
    case kListOp:
      push(Kind::kList, pop_to_mark());
      return true;
    case kTupleOp:
      push(Kind::kTuple, pop_to_mark());
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      push(Kind::kTuple, pop_items(op - kTuple1 + 1U));
      return true;
    case kFrozenSet:
      push(Kind::kSet, pop_to_mark());
      return true;
    case kDictOp: {
      const Items items = pop_to_mark();
      push(Kind::kDict, Items{});
      add_pairs(top(), items);
      return true;
    }
    case kAppend: {
      const PickleRef item = pop();
      add_to(top(), Kind::kList, {item});
      return true;
    }
    case kAppends: {
      const Items items = pop_to_mark();
      add_to(top(), Kind::kList, items);
      return true;
    }
    case kAddItems: {
      const Items items = pop_to_mark();
      add_to(top(), Kind::kSet, items);
      return true;
    }
    case kSetItem: {
      const Items pair = pop_items(2);
      add_pairs(top(), pair);
      return true;
    }
    case kSetItems: {
      const Items items = pop_to_mark();
      add_pairs(top(), items);
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::step_memo(unsigned char op) {
  switch (op) {
    case kPutText:
      put(line_number());
      return true;
    case kBinPut:
      put(number<uint8_t>());
      return true;
    case kLongBinPut:
      put(number<uint32_t>());
      return true;
    case kMemoize:
      put(memo_.size());
      return true;
    case kGetText:
      get(line_number());
      return true;
    case kBinGet:
      get(number<uint8_t>());
      return true;
    case kLongBinGet:
      get(number<uint32_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_object(unsigned char op) {
  switch (op) {
    case kGlobal: {
      const std::string_view module = line();
      push_class(module, line());
      return true;
    }
    case kStackGlobal: {
      const Items names = pop_items(2);
      for (const PickleRef name : names)
        if (value(name).kind != Kind::kText) refuse("STACK_GLOBAL without a module and a name");
      push_class(value(names[0]).text(), value(names[1]).text());
      return true;
    }
    case kReduce:
      reduce();
      return true;
    case kNewObj: {
      const Items pair = pop_items(2);
      const PickleRole role = class_of(pair[0]).role;
      if (role != PickleRole::kNamespace && role != PickleRole::kRecord && role != PickleRole::kOrderedDict)
        refuse("NEWOBJ of ", class_of(pair[0]).name);
      construct(pair[0], pair[1]);
      return true;
    }
    case kBuild:
      build();
      return true;
    case kBinPersId:
      load_storage();
      return true;
    default:
      return false;
  }
}

uint64_t Unpickler::line_number() {
  const auto slot = parse_int(line());
  if (!slot || *slot < 0) refuse("a memo slot without a valid number");
  return static_cast<uint64_t>(*slot);
}

void Unpickler::get(uint64_t slot) {
  const auto it = memo_.find(slot);
  if (it == memo_.end()) refuse("reads memo slot ", slot, ", which holds nothing");
  stack_.push_back(it->second);
}

// Reads an integer in text form: "5" or "5L"; but "00" means false and "01" means true.
void Unpickler::push_text_int() {
  std::string_view text = line();
  if (text == "00" || text == "01") return push_whole(Kind::kBool, text == "01");
  if (text.ends_with('L')) text.remove_suffix(1);
  const auto number = parse_int(text);
  if (!number) refuse(quote(text), " is not a 64-bit integer");
  push_whole(Kind::kInt, *number);
}

void Unpickler::push_text_float() {
  const std::string_view text = line();
  const auto real = parse_double(text);
  if (!real) refuse(quote(text), " is not a number");
  push(Kind::kFloat, *real);
}

void Unpickler::push_long(std::string_view bytes) {
  if (bytes.size() > sizeof(int64_t)) return push(Kind::kLongInt, bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  const unsigned missing = 64 - 8 * static_cast<unsigned>(bytes.size());
  if (bytes.empty()) return push_whole(Kind::kInt, 0);
  push_whole(Kind::kInt, static_cast<int64_t>(bits << missing) >> missing);
}

// Reads a byte string in the form of Python's repr. Escapes are not decoded, since no name contains one.
void Unpickler::push_quoted() {
  const std::string_view text = line();
  if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
    refuse("STRING is not quoted");
  push_text(text.substr(1, text.size() - 2));
}

void Unpickler::add_to(PickleRef target, Kind kind, const Items& items) {
  PickleValue& container = value(target);
  if (container.kind != kind) refuse("adds to something other than a ", kind == Kind::kList ? "list" : "set");
  auto& held = std::get<Items>(container.held);
  held.insert(held.end(), items.begin(), items.end());
}

void Unpickler::add_pairs(PickleRef target, const Items& items) {
  if (items.size() % 2 != 0) refuse("a key without a value");
  add_to(target, Kind::kDict, items);
}
PickleTree parse_pickle(std::string_view bytes, const std::string& where, size_t& used) {
  Unpickler unpickler(bytes, where);
  PickleTree tree = unpickler.run();
  used = unpickler.used();
  return tree;
}

PickleTree parse_pickle(std::string_view bytes, const std::string& where) {
  size_t used = 0;
  PickleTree tree = parse_pickle(bytes, where, used);
  if (used != bytes.size())
    fail(ErrorKind::kData, where, ": the pickle ends at byte ", used, ", but there are ", bytes.size());
  return tree;
}

const std::vector<PickleRef>& PickleTree::members(PickleRef ref) const {
  static const std::vector<PickleRef> kNoMembers;
  const PickleValue& value = values_[ref];
  if (value.kind == Kind::kDict) return value.items();
  if (value.kind == Kind::kRecord && value.items().size() > 2 &&
      values_[value.items()[2]].kind == Kind::kDict)
    return values_[value.items()[2]].items();
  return kNoMembers;
}

std::optional<PickleRef> PickleTree::find_ref(PickleRef ref, std::string_view key) const {
  const auto& items = members(ref);
  for (size_t i = 0; i < items.size(); i += 2)
    if (const PickleValue& k = values_[items[i]]; k.kind == Kind::kText && k.text() == key)
      return items[i + 1];
  return {};
}

const PickleValue* PickleTree::find(PickleRef ref, std::string_view key) const {
  const auto found = find_ref(ref, key);
  return found ? &values_[*found] : nullptr;
}

std::string PickleTree::class_name(PickleRef ref) const {
  const PickleValue& value = values_[ref];
  if (value.kind != Kind::kRecord) return {};
  return classes_[static_cast<size_t>(values_[value.items()[0]].whole())].name;
}

}  // namespace megalith
