#pragma once

#include <string>
#include <vector>

#include "libcore/base/error.h"

namespace megalith {

/// Complaints about a configuration, collected so that the user sees all of them at once.
class Problems {
 public:
  /// One complaint: which option, what it holds, what was wanted, what to do. No full stop.
  template <class... Parts>
  void add(const Parts&... parts) {
    list_.push_back(concat(parts...));
  }
  bool empty() const { return list_.empty(); }
  const std::vector<std::string>& list() const { return list_; }
  /// Throws one Error with all complaints, one per line, if there are any.
  void throw_if_any(ErrorKind kind = ErrorKind::kUsage) const;

 private:
  std::vector<std::string> list_;
};

}  // namespace megalith
