#pragma once

#include <string>

#include "libcore/finetune/records.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// Renders a conversation with `chat` and cuts it where the answers of the assistant begin and end. If the
/// template marks answers with {% generation %}, these are the answers, as in transformers' assistant mask.
/// Otherwise an answer is the text that the template adds after the prompt for it, including the end mark.
/// kData, with `where`, if answers cannot be told apart, or if the template does not read the tools, the tool
/// calls or the reasoning that the conversation holds.
std::vector<Segment> chat_segments(const ChatTemplate& chat, const ChatTokens&,
                                   const Conversation& conversation, const std::string& where);

}  // namespace megalith
