// The values that the opcodes REDUCE, NEWOBJ, BUILD and BINPERSID create, and the limits of what a pickle may
// hold.
#include <algorithm>
#include <unordered_set>

#include "libcore/base/text.h"
#include "libcore/checkpoint/torch/pickle_machine.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<PickleRef>;
constexpr int kGreatestDepth = 256;
constexpr size_t kGreatestAxes = 64;   // torch's own limit
constexpr size_t kGreatestName = 256;  // length of module and class name together

bool is_dunder(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

bool holds_items(const PickleValue& value) {
  return std::holds_alternative<Items>(value.held);
}

}  // namespace

const PickleClass& Unpickler::class_of(PickleRef ref) {
  if (value(ref).kind != Kind::kClass) refuse("calls something other than a class or function");
  return tree_.classes_[static_cast<size_t>(value(ref).whole())];
}

const Items& Unpickler::tuple(PickleRef ref, const char* what) {
  if (value(ref).kind != Kind::kTuple) refuse(what, " are not a tuple");
  return value(ref).items();
}

int64_t Unpickler::whole(PickleRef ref, const char* what) {
  if (value(ref).kind != Kind::kInt) refuse(what, " is not a 64-bit integer");
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
      push(Kind::kSet, arguments);  // the only argument is a list of the set's items
      return;
    case PickleRole::kRebuildTensor:
      stack_.push_back(rebuilt_tensor(arguments));
      return;
    case PickleRole::kRebuildParameter:
      if (arguments.empty() || value(arguments[0]).kind != Kind::kTensor)
        refuse(cls.name, " of something other than a tensor");
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
  check_encoded(found, given);
  if (found.role == PickleRole::kOrderedDict) return stack_.push_back(dict_from_pairs(given));
  if (found.role == PickleRole::kDefaultDict) return push(Kind::kDict, Items{});
  if (found.role == PickleRole::kNamespace && !given.empty())
    refuse(found.name, " is made with arguments, which pickle never does");
  push(Kind::kRecord, Items{cls, arguments});
}

// The dict that OrderedDict() creates. Python 2 pickles its items as well: OrderedDict([[key, value], …]).
PickleRef Unpickler::dict_from_pairs(const Items& arguments) {
  Items items;
  if (!arguments.empty()) {
    const PickleValue& list = value(arguments[0]);
    if (arguments.size() != 1 || list.kind != Kind::kList)
      refuse("an OrderedDict of something other than a list");
    spend(list.items().size());
    for (const PickleRef pair : list.items()) {
      const Kind kind = value(pair).kind;
      if ((kind != Kind::kList && kind != Kind::kTuple) || value(pair).items().size() != 2)
        refuse("an OrderedDict of something other than pairs");
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

// `arguments` are (storage, offset, extents, strides, …).
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
  // `state` is then the attributes of an OrderedDict, not its items
  if (object.kind == Kind::kDict) return check_state(state);
  if (object.kind != Kind::kRecord) refuse("BUILD of something other than an object");
  const PickleClass& cls = class_of(object.items()[0]);
  if (cls.role == PickleRole::kNamespace && value(state).kind != Kind::kDict)
    refuse("the state of ", cls.name, " is not a dict");
  check_state(state);
  std::get<Items>(object.held).push_back(state);
}

// Rejects attributes like __class__, which would turn the object into something else.
void Unpickler::check_state(PickleRef state) {
  const PickleValue& held = value(state);
  if (held.kind != Kind::kTuple && held.kind != Kind::kDict) return;
  spend(held.items().size());
  if (held.kind == Kind::kTuple) {  // the state is (__dict__, slots)
    for (const PickleRef part : held.items())
      if (value(part).kind == Kind::kDict) check_state(part);
    return;
  }
  for (size_t i = 0; i < held.items().size(); i += 2) {
    const PickleValue& key = value(held.items()[i]);
    if (key.kind == Kind::kText && is_dunder(key.text())) refuse("BUILD sets ", quote(key.text()));
  }
}

// Reads the tuple ('storage', class, key, location, elements). Before torch 1.6, a sixth member None follows.
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

// Rejects duplicate keys, for which Python would keep only the last value, and keys that Python cannot hash.
// (Keys that are objects are not compared here; the code that reads them does this.)
void Unpickler::check_keys() {
  for (const PickleValue& dict : tree_.values_) {
    if (dict.kind != Kind::kDict) continue;
    std::unordered_set<std::string_view> texts;
    std::unordered_set<int64_t> numbers;
    for (size_t i = 0; i < dict.items().size(); i += 2) {
      const PickleValue& key = value(dict.items()[i]);
      if (key.kind == Kind::kText && !texts.insert(key.text()).second)
        refuse("a dict has the key ", quote(key.text()), " twice");
      if ((key.kind == Kind::kInt || key.kind == Kind::kBool) && !numbers.insert(key.whole()).second)
        refuse("a dict has the key ", key.whole(), " twice");
      check_key(dict.items()[i]);
    }
  }
}

void Unpickler::check_key(PickleRef ref) {
  const PickleValue& key = value(ref);
  const bool space = key.kind == Kind::kRecord && class_of(key.items()[0]).role == PickleRole::kNamespace;
  if (key.kind == Kind::kList || key.kind == Kind::kDict || space)
    refuse("a key of a dict is a list, dict or namespace, which Python cannot hash");
  if (key.kind != Kind::kTuple) return;
  spend(key.items().size());
  for (const PickleRef item : key.items()) check_key(item);
}

// Checks a call of _codecs.encode, with which protocol 2 writes bytes: one character of a latin1 text for
// each byte.
void Unpickler::check_encoded(const PickleClass& function, const Items& arguments) {
  if (function.name != "_codecs.encode") return;
  if (arguments.size() != 2 || value(arguments[0]).kind != Kind::kText ||
      value(arguments[1]).kind != Kind::kText || value(arguments[1]).text() != "latin1")
    refuse("_codecs.encode of anything but a text to \"latin1\", as pickle writes bytes");
}

// Checks how deeply values are nested: depth first, but without recursion, so that no pickle exhausts the
// stack. Each value is visited once, however often it is shared.
void Unpickler::check_nesting() {
  constexpr int16_t kOpen = -1, kNew = 0;
  // for each value, the depth of the values below it, once known
  std::vector<int16_t> depth(tree_.values_.size(), kNew);
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

}  // namespace megalith
