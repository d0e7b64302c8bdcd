#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/checkpoint/torch/pickle.h"

namespace megalith {

/// Runs a pickle's opcodes on a stack of PickleRefs and builds the PickleTree.
class Unpickler {
 public:
  using Kind = PickleValue::Kind;
  using Items = std::vector<PickleRef>;
  Unpickler(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PickleTree run() {
    while (step(take())) {
    }
    if (stack_.size() != 1 || !marks_.empty()) refuse("STOP leaves ", stack_.size(), " values, wanted 1");
    tree_.root_ = stack_.back();
    check_nesting();
    check_keys();
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
      refuse("needs ", n, " bytes, but ", bytes_.size() - at_, " are left; the file is damaged or truncated");
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
    if (end == std::string_view::npos) refuse("a line has no end; the file is damaged or truncated");
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // Counts work on values. A pickle may name the same values again and again, so the work is limited in
  // proportion to the pickle's size.
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
  void push_text(std::string_view text) {
    if (valid_utf8_prefix(text) != text.size()) refuse("a text that is not valid UTF-8");
    push(Kind::kText, text);
  }
  void push_whole(Kind kind, int64_t whole) { push(kind, whole); }

  // The stack. Values below the last mark cannot be popped.
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
    if (marks_.empty()) refuse("needs a MARK, but there is none");
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
  bool step_stack(unsigned char op);
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

  // Objects and checks, which are defined in pickle_objects.cpp.
  const PickleClass& class_of(PickleRef ref);
  const Items& tuple(PickleRef ref, const char* what);
  int64_t whole(PickleRef ref, const char* what);
  void push_class(std::string_view module, std::string_view name);
  void reduce();
  void construct(PickleRef cls, PickleRef arguments);
  PickleRef dict_from_pairs(const Items& arguments);
  PickleRef rebuilt_tensor(const Items& arguments);
  std::vector<int64_t> extents(PickleRef ref, const char* what);
  void check_within(const PickleTensor& t);
  void build();
  void check_state(PickleRef state);
  void load_storage();
  void check_nesting();
  void check_keys();
  void check_key(PickleRef ref);
  void check_encoded(const PickleClass& function, const Items& arguments);

  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0, op_at_ = 0, spent_ = 0;
  PickleTree tree_;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;  // the size of the stack when each mark was set
  std::unordered_map<uint64_t, PickleRef> memo_;
};

}  // namespace megalith
