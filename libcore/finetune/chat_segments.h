#pragma once

#include <string>

#include "libcore/finetune/records.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// A conversation as `chat` renders it, cut where the assistant's answers begin and end. An answer is the
/// text that the template adds after the prompt, including the end mark. kData, with `where`, if the template
/// does not render a longer conversation by appending to the shorter one.
std::vector<Segment> chat_segments(const ChatTemplate& chat, const ChatTokens&, const Json::Array& messages,
                                   const std::string& where);

}  // namespace megalith
