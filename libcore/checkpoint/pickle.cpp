#include "libcore/checkpoint/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<PickleRef>;
constexpr int kGreatestProtocol = 5, kGreatestDepth = 256;
constexpr size_t kGreatestAxes = 64;   // torch's own limit
constexpr size_t kGreatestName = 256;  // of a module with a class

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

bool is_dunder(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

}  // namespace

/// Runs the opcodes over a stack of numbers of values.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PickleTree run() {
    while (step(take())) {
    }
    if (stack_.size() != 1 || !marks_.empty()) refuse("STOP leaves ", stack_.size(), " values, wanted 1");
    tree_.root_ = stack_.back();
    check_nesting();
    return std::move(tree_);
  }
  size_t used() const { return at_; }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": pickle byte ", op_at_, ": ", parts...);
  }

  // Reading.
  unsigned char take() {
    op_at_ = at_;
    return static_cast<unsigned char>(take(1)[0]);
  }
  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - at_)
      refuse("wants ", n, " bytes, but ", bytes_.size() - at_, " are left; the file is damaged or cut");
    const std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("a line has no end; the file is damaged or cut");
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // Work on values that a pickle may name again and again must not outgrow the pickle.
  void spend(size_t work) {
    spent_ += work;
    if (spent_ > 4 * bytes_.size() + 64) refuse("uses the same values over and over; the file is refused");
  }

  // Values.
  PickleValue& value(PickleRef ref) { return tree_.values_[ref]; }
  PickleRef make(Kind kind, decltype(PickleValue::held) held) {
    if (tree_.values_.size() >= UINT32_MAX) refuse("more values than can be numbered");
    tree_.values_.push_back({kind, std::move(held)});
    return static_cast<PickleRef>(tree_.values_.size() - 1);
  }
  void push(Kind kind, decltype(PickleValue::held) held) { stack_.push_back(make(kind, std::move(held))); }
  void push_whole(Kind kind, int64_t whole) { push(kind, whole); }

  // The stack. What stands below the last mark is out of reach.
  PickleRef pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("takes a value from an empty stack");
    const PickleRef top = stack_.back();
    stack_.pop_back();
    return top;
  }
  PickleRef top() {
    const PickleRef ref = pop();
    stack_.push_back(ref);
    return ref;
  }
  Items pop_to_mark() {
    if (marks_.empty()) refuse("wants a MARK, but there is none");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    Items items(from, stack_.end());
    stack_.erase(from, stack_.end());
    return items;
  }
  Items pop_items(size_t n) {
    Items items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    return items;
  }

  bool step(unsigned char op);
  bool step_scalar(unsigned char op);
  bool step_text(unsigned char op);
  bool step_container(unsigned char op);
  bool step_memo(unsigned char op);
  bool step_object(unsigned char op);

  void push_text_int();
  void push_text_float();
  void push_long(std::string_view bytes);
  void push_quoted();
  void add_to(PickleRef target, Kind kind, const Items& items);
  void add_pairs(PickleRef target, const Items& items);
  void put(uint64_t slot) { memo_[slot] = top(); }
  void get(uint64_t slot);
  uint64_t line_number();

  const PickleClass& class_of(PickleRef ref);
  const Items& tuple(PickleRef ref, const char* what);
  int64_t whole(PickleRef ref, const char* what);
  void push_class(std::string_view module, std::string_view name);
  void reduce();
  void construct(PickleRef cls, PickleRef arguments);
  PickleRef dict_from_pairs(const Items& arguments);
  PickleRef rebuilt_tensor(const Items& arguments);
  std::vector<int64_t> extents(PickleRef ref, const char* what);
  void check_within(const PickleTensor& tensor);
  void build();
  void check_state(PickleRef state);
  void load_storage();
  void check_nesting();

  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0, op_at_ = 0, spent_ = 0;
  PickleTree tree_;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;  // sizes of the stack when they were set
  std::unordered_map<uint64_t, PickleRef> memo_;
};

// Whether there is more to do.
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
  if (step_scalar(op) || step_text(op) || step_container(op) || step_memo(op) || step_object(op)) return true;
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
      push(Kind::kText, take(n));
      return true;
    }
    case kShortBinUnicode:
    case kShortBinString: {
      const auto n = number<uint8_t>();
      push(Kind::kText, take(n));
      return true;
    }
    case kBinUnicode8: {
      const auto n = number<uint64_t>();
      push(Kind::kText, take(n));
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
      push(Kind::kText, line());
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_container(unsigned char op) {
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
  if (!slot || *slot < 0) refuse("the number of a memo slot is none");
  return static_cast<uint64_t>(*slot);
}

void Unpickler::get(uint64_t slot) {
  const auto it = memo_.find(slot);
  if (it == memo_.end()) refuse("reads memo slot ", slot, ", which holds nothing");
  stack_.push_back(it->second);
}

// "5", "00" and "01" (false and true), "5L".
void Unpickler::push_text_int() {
  std::string_view text = line();
  if (text == "00" || text == "01") return push_whole(Kind::kBool, text == "01");
  if (text.ends_with('L')) text.remove_suffix(1);
  const auto number = parse_int(text);
  if (!number) refuse(quote(text), " is no integer of 64 bits");
  push_whole(Kind::kInt, *number);
}

void Unpickler::push_text_float() {
  const std::string_view text = line();
  const auto real = parse_double(text);
  if (!real) refuse(quote(text), " is no number");
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

// Python's repr of a str of bytes; escapes stay as they are: no name has any.
void Unpickler::push_quoted() {
  const std::string_view text = line();
  if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
    refuse("STRING is not quoted");
  push(Kind::kText, text.substr(1, text.size() - 2));
}

void Unpickler::add_to(PickleRef target, Kind kind, const Items& items) {
  PickleValue& container = value(target);
  if (container.kind != kind) refuse("adds to what is no ", kind == Kind::kList ? "list" : "set");
  auto& held = std::get<Items>(container.held);
  held.insert(held.end(), items.begin(), items.end());
}

void Unpickler::add_pairs(PickleRef target, const Items& items) {
  if (items.size() % 2 != 0) refuse("a key without a value");
  add_to(target, Kind::kDict, items);
}

const PickleClass& Unpickler::class_of(PickleRef ref) {
  if (value(ref).kind != Kind::kClass) refuse("calls what is no class or function");
  return tree_.classes_[static_cast<size_t>(value(ref).whole())];
}

const Items& Unpickler::tuple(PickleRef ref, const char* what) {
  if (value(ref).kind != Kind::kTuple) refuse(what, " are no tuple");
  return value(ref).items();
}

int64_t Unpickler::whole(PickleRef ref, const char* what) {
  if (value(ref).kind != Kind::kInt) refuse(what, " is no integer of 64 bits");
  return value(ref).whole();
}

void Unpickler::push_class(std::string_view module, std::string_view name) {
  if (module.size() + name.size() > kGreatestName)
    refuse("names a class with ", module.size() + name.size(), " letters");
  auto found = pickle_class(module, name);
  if (!found)
    refuse(
        "names ", quote(concat(module, '.', name)),
        ", which is not among the few classes that a checkpoint may hold; loading the file in Python could "
        "run code");
  tree_.classes_.push_back(std::move(*found));
  push_whole(Kind::kClass, static_cast<int64_t>(tree_.classes_.size() - 1));
}

void Unpickler::reduce() {
  const Items pair = pop_items(2);
  const Items& arguments = tuple(pair[1], "the arguments of a call");
  const PickleClass& cls = class_of(pair[0]);
  switch (cls.role) {
    case PickleRole::kSize:
      if (arguments.size() != 1) refuse("torch.Size of ", arguments.size(), " values, wanted 1");
      tuple(arguments[0], "the extents of torch.Size");
      stack_.push_back(arguments[0]);
      return;
    case PickleRole::kSet:
      push(Kind::kSet, arguments);  // which the list of its items is
      return;
    case PickleRole::kRebuildTensor:
      stack_.push_back(rebuilt_tensor(arguments));
      return;
    case PickleRole::kRebuildParameter:
      if (arguments.empty() || value(arguments[0]).kind != Kind::kTensor) refuse(cls.name, " of no tensor");
      stack_.push_back(arguments[0]);
      return;
    case PickleRole::kFactory:
    case PickleRole::kDType:
    case PickleRole::kStorage:
      refuse("calls ", cls.name, ", which may only be named");
    default:
      construct(pair[0], pair[1]);
  }
}

void Unpickler::construct(PickleRef cls, PickleRef arguments) {
  const PickleClass& found = class_of(cls);
  const Items& given = tuple(arguments, "the arguments of a call");
  if (found.role == PickleRole::kOrderedDict) return stack_.push_back(dict_from_pairs(given));
  if (found.role == PickleRole::kDefaultDict) return push(Kind::kDict, Items{});
  if (found.role == PickleRole::kNamespace && !given.empty())
    refuse(found.name, " is made with arguments, which pickle never does");
  push(Kind::kRecord, Items{cls, arguments});
}

// OrderedDict() or, as Python 2 wrote it, OrderedDict([[key, value], …]).
PickleRef Unpickler::dict_from_pairs(const Items& arguments) {
  Items items;
  if (!arguments.empty()) {
    const PickleValue& list = value(arguments[0]);
    if (arguments.size() != 1 || list.kind != Kind::kList) refuse("an OrderedDict of what is no list");
    spend(list.items().size());
    for (const PickleRef pair : list.items()) {
      const Kind kind = value(pair).kind;
      if ((kind != Kind::kList && kind != Kind::kTuple) || value(pair).items().size() != 2)
        refuse("an OrderedDict of what are no pairs");
      items.insert(items.end(), value(pair).items().begin(), value(pair).items().end());
    }
  }
  return make(Kind::kDict, std::move(items));
}

std::vector<int64_t> Unpickler::extents(PickleRef ref, const char* what) {
  std::vector<int64_t> out;
  if (tuple(ref, what).size() > kGreatestAxes) refuse("a tensor of ", tuple(ref, what).size(), " axes");
  for (const PickleRef item : tuple(ref, what)) {
    out.push_back(whole(item, what));
    if (out.back() < 0) refuse(what, " of a tensor hold ", out.back());
  }
  return out;
}

// (storage, offset, extents, strides, …)
PickleRef Unpickler::rebuilt_tensor(const Items& arguments) {
  if (arguments.size() < 4 || value(arguments[0]).kind != Kind::kStorage)
    refuse("a tensor without storage, offset, extents and strides");
  PickleTensor tensor{.storage = static_cast<size_t>(value(arguments[0]).whole()),
                      .offset = whole(arguments[1], "the offset of a tensor"),
                      .extents = extents(arguments[2], "extents"),
                      .strides = extents(arguments[3], "strides")};
  check_within(tensor);
  tree_.tensors_.push_back(std::move(tensor));
  return make(Kind::kTensor, static_cast<int64_t>(tree_.tensors_.size() - 1));
}

void Unpickler::check_within(const PickleTensor& t) {
  const PickleStorage& storage = tree_.storages_[t.storage];
  if (t.extents.size() != t.strides.size())
    refuse("a tensor of ", t.extents.size(), " extents and ", t.strides.size(), " strides");
  if (t.offset < 0) refuse("a tensor that begins at element ", t.offset);
  int64_t last = t.offset, elements = 1;
  bool fits = true;
  for (size_t axis = 0; axis < t.extents.size(); ++axis)
    fits = fits && !__builtin_mul_overflow(elements, std::max<int64_t>(t.extents[axis], 1), &elements);
  const bool empty = std::find(t.extents.begin(), t.extents.end(), 0) != t.extents.end();
  for (size_t axis = 0; axis < t.extents.size() && !empty; ++axis) {
    int64_t step = 0;
    fits = fits && !__builtin_mul_overflow(t.extents[axis] - 1, t.strides[axis], &step) &&
           !__builtin_add_overflow(last, step, &last);
  }
  if (!fits) refuse("the extents or strides of a tensor multiply to more than 2^63");
  if (static_cast<uint64_t>(last) >= storage.elements &&
      !(empty && static_cast<uint64_t>(last) <= storage.elements))
    refuse("a tensor ends at element ", last, " of storage ", quote(storage.key), ", which has ",
           storage.elements);
}

void Unpickler::build() {
  const PickleRef state = pop();
  PickleValue& object = value(top());
  if (object.kind == Kind::kDict) return check_state(state);  // attributes of an OrderedDict: not its items
  if (object.kind != Kind::kRecord) refuse("BUILD of what is no object");
  const PickleClass& cls = class_of(object.items()[0]);
  if (cls.role == PickleRole::kNamespace && value(state).kind != Kind::kDict)
    refuse("the state of ", cls.name, " is no dict");
  check_state(state);
  std::get<Items>(object.held).push_back(state);
}

// Attributes like __class__ would make another thing of the object.
void Unpickler::check_state(PickleRef state) {
  const PickleValue& held = value(state);
  if (held.kind != Kind::kTuple && held.kind != Kind::kDict) return;
  spend(held.items().size());
  if (held.kind == Kind::kTuple) {  // (__dict__, slots)
    for (const PickleRef part : held.items())
      if (value(part).kind == Kind::kDict) check_state(part);
    return;
  }
  for (size_t i = 0; i < held.items().size(); i += 2) {
    const PickleValue& key = value(held.items()[i]);
    if (key.kind == Kind::kText && is_dunder(key.text())) refuse("BUILD sets ", quote(key.text()));
  }
}

// ('storage', class, key, location, elements), and before torch 1.6 a sixth member that is None.
void Unpickler::load_storage() {
  const Items& id = tuple(pop(), "the members of a storage");
  const bool newer = id.size() == 5 || (id.size() == 6 && value(id[5]).kind == Kind::kNone);
  if (!newer || value(id[0]).kind != Kind::kText || value(id[0]).text() != "storage" ||
      value(id[2]).kind != Kind::kText)
    refuse("a reference to something other than a storage");
  const PickleClass& cls = class_of(id[1]);
  if (cls.role != PickleRole::kStorage) refuse("a storage of class ", cls.name);
  const int64_t elements = whole(id[4], "the size of a storage");
  if (elements < 0) refuse("a storage of ", elements, " elements");
  tree_.storages_.push_back({value(id[2]).text(), cls.type, static_cast<uint64_t>(elements)});
  push_whole(Kind::kStorage, static_cast<int64_t>(tree_.storages_.size() - 1));
}

namespace {
bool holds_items(const PickleValue& value) {
  return std::holds_alternative<Items>(value.held);
}
}  // namespace

// Depth first, without recursion; each value is entered once however often it is shared.
void Unpickler::check_nesting() {
  constexpr int16_t kOpen = -1, kNew = 0;
  std::vector<int16_t> depth(tree_.values_.size(), kNew);  // of what hangs below, once it is known
  std::vector<std::pair<PickleRef, size_t>> path;
  const auto enter = [&](PickleRef ref) {
    if (path.size() > kGreatestDepth) refuse("values are nested deeper than ", kGreatestDepth);
    depth[ref] = kOpen;
    path.emplace_back(ref, 0);
  };
  enter(tree_.root_);
  std::vector<int16_t> below{0};
  while (!path.empty()) {
    auto& [ref, next] = path.back();
    const PickleValue& value = tree_.values_[ref];
    if (holds_items(value) && next < value.items().size()) {
      const PickleRef child = value.items()[next++];
      if (depth[child] == kOpen) refuse("a value contains itself");
      if (depth[child] == kNew) {
        enter(child);
        below.push_back(0);
      } else {
        below.back() = std::max(below.back(), depth[child]);
      }
      continue;
    }
    const auto own = static_cast<int16_t>(below.back() + 1);
    depth[ref] = own;
    path.pop_back();
    below.pop_back();
    if (below.empty()) return;
    below.back() = std::max(below.back(), own);
    if (static_cast<size_t>(own) + path.size() > kGreatestDepth)
      refuse("values are nested deeper than ", kGreatestDepth);
  }
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
  static const std::vector<PickleRef> none;
  const PickleValue& value = values_[ref];
  if (value.kind == Kind::kDict) return value.items();
  if (value.kind == Kind::kRecord && value.items().size() > 2 &&
      values_[value.items()[2]].kind == Kind::kDict)
    return values_[value.items()[2]].items();
  return none;
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
