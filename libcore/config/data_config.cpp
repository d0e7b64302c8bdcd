#include "libcore/config/data_config.h"

#include "libcore/base/text.h"

namespace megalith {

void DataConfig::validate(Problems& problems) const {
  const std::vector<std::string> parts = megalith::split(split, ',');
  double sum = 0;
  bool numbers = parts.size() <= 3;
  for (const std::string& part : parts) {
    const auto weight = parse_double(trim(part));
    numbers = numbers && weight && *weight >= 0;
    sum += weight.value_or(0);
  }
  if (!numbers || !(sum > 0))
    problems.add("--split ", quote(split), ": wanted up to three weights, such as \"969,30,1\"");
  const auto refuse = [&](bool given, const char* option, const char* instead) {
    if (given) problems.add(option, " is not supported; ", instead);
  };
  refuse(mock_data, "--mock-data", "give --data-path");
}

}  // namespace megalith
