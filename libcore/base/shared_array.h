#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace megalith {

/// An immutable array of numbers. Copies of the object share the numbers, which are either in a vector that
/// the object holds or in memory that `owner` keeps alive, such as a mapped file.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  explicit SharedArray(std::vector<T> values) {
    auto own = std::make_shared<const std::vector<T>>(std::move(values));
    values_ = *own;
    owner_ = std::move(own);
  }
  SharedArray(std::span<const T> values, std::shared_ptr<const void> owner)
      : values_(values), owner_(std::move(owner)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T* data() const { return values_.data(); }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + values_.size(); }
  const T& operator[](size_t i) const { return values_[i]; }
  std::span<const T> span() const { return values_; }

 private:
  std::span<const T> values_;
  std::shared_ptr<const void> owner_;
};

}  // namespace megalith
