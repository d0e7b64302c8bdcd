#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith::test {

/// The values of a text that has one in each line. `name`: of the text, for messages.
inline std::vector<Json> json_lines(const std::string& text, const std::string& name) {
  std::vector<Json> values;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) values.push_back(Json::parse(line, name));
  return values;
}
/// The values that a command, which must succeed, prints one a line.
inline std::vector<Json> json_lines(const CommandResult& result) {
  EXPECT_EQ(result.code, 0) << result.err;
  return json_lines(result.out, "stdout");
}

/// The lines of a --log-json file whose "type" is `type`.
inline std::vector<Json> log_lines(const std::string& path, const std::string& type) {
  std::vector<Json> lines;
  for (Json& line : json_lines(read_file(path), path))
    if (line["type"].as_string() == type) lines.push_back(std::move(line));
  return lines;
}

/// Each step's loss in a --log-json file.
inline std::vector<double> train_losses(const std::string& path) {
  std::vector<double> losses;
  for (const Json& step : log_lines(path, "train")) losses.push_back(step["loss"].as_double());
  return losses;
}

}  // namespace megalith::test
