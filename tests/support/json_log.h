#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

namespace megalith::test {

/// The lines of a --log-json file whose "type" is `type`.
inline std::vector<Json> log_lines(const std::string& path, const std::string& type) {
  std::vector<Json> lines;
  for (const std::string& line : split(trim(read_file(path)), '\n'))
    if (Json json = Json::parse(line, path); json["type"].as_string() == type)
      lines.push_back(std::move(json));
  return lines;
}

/// Each step's loss in a --log-json file.
inline std::vector<double> train_losses(const std::string& path) {
  std::vector<double> losses;
  for (const Json& step : log_lines(path, "train")) losses.push_back(step["loss"].as_double());
  return losses;
}

}  // namespace megalith::test
