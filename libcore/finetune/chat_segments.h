#pragma once

#include <string>

#include "libcore/finetune/records.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// Renders a conversation with `chat` and cuts it where the assistant's answers begin and end. An answer is
/// the text that the template adds after the prompt, including the end mark. If the template changes earlier
/// text when messages are added, answers cannot be cut out: kData, with `where`.
std::vector<Segment> chat_segments(const ChatTemplate& chat, const ChatTokens&, const Json::Array& messages,
                                   const std::string& where);

}  // namespace megalith
