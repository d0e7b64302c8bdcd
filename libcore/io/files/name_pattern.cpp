#include "libcore/io/files/name_pattern.h"

#include <algorithm>

#include <glob.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

bool is_pattern(std::string_view word) {
  return word.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status == GLOB_NOSPACE)
    fail(ErrorKind::kSystem, "no memory for the names that match ", quote(pattern), "; use fewer files");
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace megalith
