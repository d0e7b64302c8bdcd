#include "libcore/finetune/records.h"

#include "tests/fuzz/fuzz.h"

/// Reads a file of records for finetuning, as questions with answers and as preferences.
MEGALITH_FUZZ_TARGET(records) {
  using namespace megalith;
  const char* const path = fuzz::file_of(bytes, "records.jsonl");
  const auto render = [](const Conversation& conversation, const std::string&) {
    return std::vector<Segment>(conversation.messages.size());
  };
  fuzz::accept({ErrorKind::kData}, [&] { read_records(path, {.render = render}, [](Record&&) {}); });
  fuzz::accept({ErrorKind::kData}, [&] { read_pairs(path, {.render = render}, [](RecordPair&&) {}); });
}
