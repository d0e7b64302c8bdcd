#include "libcore/options/config_file.h"

#include "libcore/base/plugins/plugin.h"

namespace megalith {

std::string FileOption::path() const {
  return group.empty() ? key : group + "." + key;
}

bool FileOption::is_empty() const {
  return is_null || words.empty() || (words.size() == 1 && words[0].empty());
}

std::vector<FileOption> read_config_file(const std::string& path) {
  static const Plugin kPlugin("libmegalith_yaml.so");
  std::vector<FileOption> options;
  kPlugin.function<void(const std::string&, std::vector<FileOption>&)>("megalith_read_yaml")(path, options);
  return options;
}

}  // namespace megalith
