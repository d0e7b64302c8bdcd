#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libcore/tensor/dtype.h"

namespace megalith {

/// An element type of torch's tensors.
struct TorchType {
  std::string_view name;  // safetensors' name for it: "F32", "BOOL"
  uint64_t bytes;         // of one element
  std::optional<DType> dtype = {};
};

/// How the reader treats a class or function that a pickle names.
enum class PickleRole : uint8_t {
  kOrderedDict,
  kDefaultDict,
  kNamespace,         // argparse.Namespace, types.SimpleNamespace
  kSize,              // torch.Size: a tuple
  kSet,               // set or frozenset
  kFactory,           // may be the default_factory of a defaultdict, but may not be called
  kDType,             // torch.float32
  kStorage,           // torch.FloatStorage
  kRebuildTensor,     // torch._utils._rebuild_tensor, _rebuild_tensor_v2
  kRebuildParameter,  // torch._utils._rebuild_parameter
  kRecord             // kept as written, never interpreted
};

using PickleRef = uint32_t;  // the number of a value in its PickleTree

/// A value that Python would create from a pickle, here as passive data. The comment on each kind names the
/// accessor that returns the content.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // whole
    kInt,      // whole
    kLongInt,  // text: two's complement, little endian, more than 8 bytes
    kFloat,    // real
    kText,     // text, as stored; UTF-8 unless the file is bad
    kBytes,    // text
    kList,     // items
    kTuple,    // items
    kSet,      // items
    kDict,     // items: key, value, key, value, …
    kClass,    // whole: index of PickleTree::classes
    kRecord,   // items: class, arguments, and the states that BUILD added
    kStorage,  // whole: index of PickleTree::storages
    kTensor    // whole: index of PickleTree::tensors
  };
  Kind kind = Kind::kNone;
  std::variant<int64_t, double, std::string_view, std::vector<PickleRef>> held = int64_t{0};

  int64_t whole() const { return std::get<int64_t>(held); }
  double real() const { return std::get<double>(held); }
  std::string_view text() const { return std::get<std::string_view>(held); }
  const std::vector<PickleRef>& items() const { return std::get<std::vector<PickleRef>>(held); }
};

struct PickleClass {
  std::string name;  // "argparse.Namespace"
  PickleRole role;
  const TorchType* type = nullptr;  // set for the roles kStorage and kDType
};
/// Bytes that are stored outside the pickle.
struct PickleStorage {
  std::string_view key;
  const TorchType* type;
  uint64_t elements;
};
/// A tensor: a view of a storage, checked to be within it.
struct PickleTensor {
  size_t storage;  // index in PickleTree::storages
  int64_t offset;  // in elements, like the strides
  std::vector<int64_t> extents, strides;
};

/// The values of one pickle. They refer to each other by number. So a shared value exists once, nothing is
/// expanded, and there are no cycles. Texts point into the parsed bytes.
class PickleTree {
 public:
  const PickleValue& operator[](PickleRef ref) const { return values_[ref]; }
  PickleRef root() const { return root_; }
  size_t size() const { return values_.size(); }
  const std::deque<PickleClass>& classes() const { return classes_; }
  const std::vector<PickleStorage>& storages() const { return storages_; }
  const std::vector<PickleTensor>& tensors() const { return tensors_; }

  /// The value that a dict or namespace has for a text key; nullptr if the key is absent, or if `ref` is
  /// neither a dict nor a namespace.
  const PickleValue* find(PickleRef ref, std::string_view key) const;
  std::optional<PickleRef> find_ref(PickleRef ref, std::string_view key) const;
  /// The keys and values, in turn, of a dict or of a namespace's state; empty for any other value.
  const std::vector<PickleRef>& members(PickleRef ref) const;
  /// The class of a record ("argparse.Namespace"); empty for any other value.
  std::string class_name(PickleRef ref) const;

 private:
  friend class Unpickler;
  std::deque<PickleValue> values_;
  std::deque<PickleClass> classes_;
  std::vector<PickleStorage> storages_;
  std::vector<PickleTensor> tensors_;
  PickleRef root_ = 0;
};

/// Reads one pickle (protocols 0 to 5, the opcodes that Python's pickler writes) from the front of `bytes`
/// and sets `used` to its length. Nothing is ever executed. Throws kData, with `where` in front, for: a class
/// or function that is not on the list (see pickle_class()), damage, nesting beyond 256, values that contain
/// themselves, lengths beyond the end, a dict with a duplicate or unhashable key, and texts that are not
/// UTF-8. For a class or function, the message gives the name and the place in the pickle, since the user
/// might next open the file in Python. Memory and time grow with the bytes read, never with numbers found in
/// them.
PickleTree parse_pickle(std::string_view bytes, const std::string& where, size_t& used);
/// As above, for bytes that hold one pickle and nothing else.
PickleTree parse_pickle(std::string_view bytes, const std::string& where);

/// Looks up a class or function in the list of allowed ones. Returns nothing if it is not on the list.
std::optional<PickleClass> pickle_class(std::string_view module, std::string_view name);

}  // namespace megalith
