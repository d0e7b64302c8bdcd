#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// Members of another tool's configuration (config.json, Megatron's args), with messages that name the file
/// and the member (kData). A member that is null counts as absent.
class Settings {
 public:
  Settings(const Json& json, std::string where);  // json must outlive this

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": ", parts...);
  }
  const Json* find(const char* key) const;  // nullptr when absent
  int count(const char* key) const;         // a positive integer
  int count(const char* key, int otherwise) const { return find(key) ? count(key) : otherwise; }
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  /// kData unless the flag `key` (`otherwise` if absent) has the value `supported`.
  void only(const char* key, bool supported, bool otherwise) const;
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

/// Four times a width; for one that check_numbers() refuses, the largest integer.
inline int four_times(int width) {
  return static_cast<int>(std::min<int64_t>(int64_t{4} * width, std::numeric_limits<int>::max()));
}

/// An option of ModelConfig, and the keys under which a file may have it.
struct OptionKeys {
  const char* option;
  std::vector<const char*> keys;
};
/// kData with the file's key if a number of `config` breaks the rule of its option, such as one that is not
/// finite. An option that `keys` lacks has its own name in the file, with "_" for "-".
void check_numbers(const ModelConfig& config, const Settings& file, std::span<const OptionKeys> keys = {});

}  // namespace megalith
