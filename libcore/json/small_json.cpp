#include "libcore/json/small_json.h"

#include "libcore/base/error.h"
#include "libcore/io/file.h"

namespace megalith {

Json load_small(const std::string& path) {
  constexpr uint64_t kMax = uint64_t{4} << 20;
  if (const uint64_t size = file_size(path); size > kMax)
    fail(ErrorKind::kData, path, ": has ", size, " bytes, wanted at most ", kMax,
         "; it is no file of settings");
  return Json::load(path);
}

}  // namespace megalith
