#include "libcore/config/checkpoint_format.h"

#include <map>
#include <string_view>

#include "libcore/base/error.h"

namespace megalith {
namespace {

struct Registered {
  const char* word;
  FormatTraits traits;
};

auto& formats() {
  static std::map<CheckpointFormat, Registered> all;
  return all;
}

}  // namespace

CheckpointFormat add_checkpoint_format(int place, const char* word, const FormatTraits& traits) {
  const auto format = static_cast<CheckpointFormat>(place);
  for (const auto& [other, registered] : formats())
    if (other == format || registered.word == std::string_view(word))
      fail(ErrorKind::kInternal, "the checkpoint formats ", registered.word, " and ", word,
           " have one word or place");
  formats().emplace(format, Registered{word, traits});
  return format;
}

std::vector<EnumName<CheckpointFormat>> enum_names(CheckpointFormat) {
  std::vector<EnumName<CheckpointFormat>> names;
  for (const auto& [format, registered] : formats()) names.emplace_back(registered.word, format);
  return names;
}

CheckpointFormat checkpoint_format(const char* word) {
  for (const auto& [format, registered] : formats())
    if (registered.word == std::string_view(word)) return format;
  fail(ErrorKind::kInternal, "no checkpoint format is called ", word);
}

FormatTraits traits_of(CheckpointFormat format) {
  return formats().at(format).traits;
}

}  // namespace megalith
