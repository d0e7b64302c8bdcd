#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libcore/io/files/file.h"

namespace megalith {

/// Writes an array as numpy.save does (format version 1.0), a part at a time. The file appears under its name
/// in finish(), without being synced. kIo.
class NpyFile {
 public:
  /// `type` is numpy's name of the element's type, such as "<i4"; `shape` its text, such as "(7,)".
  NpyFile(const std::string& path, const char* type, const std::string& shape);
  template <class T>
  void add(std::span<const T> part) {
    file_.write(part.data(), part.size_bytes());
  }
  void finish();

 private:
  AtomicFile file_;
};

/// The beginning of such a file, up to its data.
std::string npy_header(const char* type, const std::string& shape);

}  // namespace megalith
