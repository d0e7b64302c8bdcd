#pragma once

#include <string>

#include "tests/support/files.h"

namespace megalith::test {

/// A file or folder of tests/convert/goldens.
inline std::string convert_golden(const std::string& name) {
  return test_data("convert/goldens/" + name);
}

}  // namespace megalith::test
