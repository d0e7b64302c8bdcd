#pragma once

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/finetune/records.h"

namespace megalith::test {

/// Shows a record as one text, with its answers in brackets.
inline std::string text_of(const Record& record) {
  std::string out;
  for (const Segment& segment : record.segments)
    out += segment.answer ? "[" + segment.text + "]" : segment.text;
  return out;
}

inline Record read_one(const std::string& json, const RecordOptions& options = {}) {
  return record_of(Json::parse(json, "test"), options, "data.json:3");
}

/// Options whose render function replaces a template; it marks the segments by itself.
inline RecordOptions with_template() {
  return {.render = [](const Conversation& conversation, const std::string&) {
    std::vector<Segment> out;
    if (!conversation.tools.is_null()) out.push_back({conversation.tools.dump() + ";", false});
    for (size_t i = 0; i < conversation.messages.size(); ++i) {
      const Json& message = conversation.messages[i];
      const Json* const calls = message.find("tool_calls");
      out.push_back(
          {message["role"].as_string() + ":" + (calls ? calls->dump() : message["content"].as_string()) + ";",
           message["role"] == Json("assistant") && conversation.learned[i]});
    }
    return out;
  }};
}

inline void expect_refused(const std::string& json, const std::string& why,
                           const RecordOptions& options = {}) {
  try {
    read_one(json, options);
    FAIL() << json;
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("data.json:3: ")) << what;
    EXPECT_NE(what.find(why), std::string::npos) << what;
  }
}

}  // namespace megalith::test
