#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// numpy's name of a type of integers of two bytes or more, such as "<i4" of int32_t.
template <class T>
std::string npy_type() {
  static_assert(std::is_integral_v<T> && sizeof(T) > 1);
  return concat('<', std::is_signed_v<T> ? 'i' : 'u', sizeof(T));
}

/// Writes an array as numpy.save does (format version 1.0), a part at a time. The file appears under its name
/// in finish(), without being synced. kIo.
class NpyFile {
 public:
  /// `type`: see npy_type(); `shape`: numpy's text of it, such as "(7,)".
  NpyFile(const std::string& path, const std::string& type, const std::string& shape);
  template <class T>
  void add(std::span<const T> part) {
    file_.write(part.data(), part.size_bytes());
  }
  void finish();

 private:
  AtomicFile file_;
};

/// The beginning of such a file, up to its data.
std::string npy_header(const std::string& type, const std::string& shape);

}  // namespace megalith
