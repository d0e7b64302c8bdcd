#include "libcore/config/data_args.h"

#include <algorithm>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  std::vector<std::string> words;
  for (size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanks, at)) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// A member of the object: a text of words, or a list of texts and numbers. kUsage.
std::vector<std::string> words_of(const Json& value, const std::string& place) {
  if (value.is_null()) return {};
  if (value.is_string()) return words_of(value.as_string());
  const auto refuse = [&](const Json& found) {
    fail(ErrorKind::kUsage, place, " is ", found.dump(),
         ", wanted the words of a data path: one text, or a list of texts");
  };
  if (!value.is_array()) refuse(value);
  std::vector<std::string> words;
  for (const Json& word : value.as_array()) {
    if (!word.is_string() && !word.is_number()) refuse(word);
    words.push_back(word.is_string() ? word.as_string() : word.dump());
  }
  return words;
}

}  // namespace

std::vector<std::string> read_data_args(const std::string& file) {
  const std::string text = read_file(file);
  if (text.find('\0') != std::string::npos)
    fail(ErrorKind::kUsage, "--data-args-path ", file, ": is no text; wanted the words of --data-path");
  std::vector<std::string> words = words_of(text);
  if (words.empty())
    fail(ErrorKind::kUsage, "--data-args-path ", file, ": holds no word; wanted those of --data-path");
  return words;
}

std::array<std::vector<std::string>, 3> read_split_data_args(const std::string& file) {
  constexpr std::array<const char*, 3> kMembers = {"train", "valid", "test"};
  const Json json = Json::parse(read_file(file), file);
  const std::string option = concat("--per-split-data-args-path ", file);
  if (!json.is_object())
    fail(ErrorKind::kUsage, option, ": is no JSON object; wanted one with \"train\", \"valid\" and \"test\"");
  for (const auto& [name, value] : json.as_object())
    if (std::find(kMembers.begin(), kMembers.end(), name) == kMembers.end())
      fail(ErrorKind::kUsage, option, ": ", quote(name),
           " is no part of the data; wanted \"train\", \"valid\" and \"test\"");
  std::array<std::vector<std::string>, 3> parts;
  bool any = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (const Json* value = json.find(kMembers[i]))
      parts[i] = words_of(*value, concat(option, ": ", quote(kMembers[i])));
    any |= !parts[i].empty();
  }
  if (!any) fail(ErrorKind::kUsage, option, ": names no dataset in \"train\", \"valid\" or \"test\"");
  return parts;
}

}  // namespace megalith
