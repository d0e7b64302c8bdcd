#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

// These functions refuse what a reader of records would drop in silence. They throw kData, which begins with
// the record's place and says what to leave out or give instead. Members that no form of a record has are
// only listed (unread_members()).

/// Whether a member holds something: it is there, and neither null nor an empty text, list or object.
bool is_there(const Json* value);

/// The member from which a record is read: "messages", "conversations", "src", "instruction", "prompt" or
/// "text". One that holds nothing is taken only if all hold nothing, as in a row of a table that was put
/// together from others: an empty text before null. Empty if none is there.
const char* record_form(const Json& record);

/// The text of an answer in "chosen" or "rejected": a text, a message, or a list of messages, of which it is
/// the last one's. Null if that has none.
Json last_content(const Json& answer);

/// Refuses a record, an object to be read by record_of(), that has
/// - an answer in two forms, or a question in two forms, except "prompt" beside a conversation;
/// - "text" as its only form, and beside it an answer or what only a conversation can use;
/// - "input" without "instruction";
/// - "chosen" or "rejected", which preferences need, without another answer;
/// - "history", "functions", "images", "videos" or "audios";
/// - an answer that is to be avoided ("label" or "kto_tag" false).
void check_record_members(const Json& record, const std::string& where);

/// Refuses a record, an object to be read by pair_of(), that has a question in two forms, an answer beside
/// "chosen" and "rejected", "text", or what check_record_members() never reads either.
void check_pair_members(const Json& record, const std::string& where);

/// Refuses the "chosen" of a record that was read by record_of() unless it is the answer that is learned, as
/// in UltraFeedback's files, which have "messages" for those who learn answers.
void check_chosen(const Json& record, const std::string& answer, const std::string& where);

/// Refuses "system", "tools" and "chat_template_kwargs", which only a chat template could use. `beside`: the
/// member from which the record is read without one.
void refuse_for_template(const Json& record, const char* beside, const std::string& where);

/// Refuses the "text" of a record that is read in the form of the member `form`, unless it is a rendering of
/// that form, as in Stanford Alpaca's file: a text that contains each of `parts`, without the blanks around
/// them.
void check_rendering(const Json& record, const char* form, const std::vector<std::string_view>& parts,
                     const std::string& where);

/// Names of the record's members that no form of a record has, without those that hold nothing.
std::vector<std::string> unread_members(const Json& record);

}  // namespace megalith
