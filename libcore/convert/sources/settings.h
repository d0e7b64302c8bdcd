#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The members of another tool's configuration (config.json, Megatron's args, an adapter's settings). Errors
/// are kData and name the file and the member. A member that is null counts as absent.
class Settings {
 public:
  Settings(const Json& json, std::string where);  // `json` must outlive this object

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": ", parts...);
  }
  const Json* find(const char* key) const;  // nullptr if the member is absent
  int count(const char* key) const;         // a positive integer
  int count(const char* key, int otherwise) const { return find(key) ? count(key) : otherwise; }
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  /// Throws kData unless the flag `key` has the value `supported`. An absent flag counts as `otherwise`.
  void only(const char* key, bool supported, bool otherwise) const;
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

/// The n for which exactly the layers n, 2n, …, counted from 1, have the value `marked` in a list of 0 and 1
/// with an entry for each layer (and perhaps more). 0 if no layer has it; nothing if there is no such n.
std::optional<int> marked_interval(const Json& list, int layers, int marked);

/// Sets which layers have the model's window, given for each layer whether it has. Returns false for a
/// pattern that neither --window-attn-skip-freq nor --max-window-layers describes.
bool set_windowed(ModelConfig&, const std::vector<bool>& windowed);

/// Four times a width. For a width that check_numbers() refuses, the largest integer, so that nothing
/// overflows.
inline int four_times(int width) {
  return static_cast<int>(std::min<int64_t>(int64_t{4} * width, std::numeric_limits<int>::max()));
}

/// An option of ModelConfig, and the keys under which a file may have it.
struct OptionKeys {
  const char* option;
  std::vector<const char*> keys;
};
/// Throws kData, with the file's key, if a number of `config` breaks the rule of its option, such as a number
/// that is not finite. If `keys` does not list an option, its key in the file is the option's name, with "_"
/// for "-".
void check_numbers(const ModelConfig& config, const Settings& file, std::span<const OptionKeys> keys = {});

}  // namespace megalith
