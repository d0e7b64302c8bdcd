#include <filesystem>

#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/json/sealed_json.h"
#include "tests/fuzz/fuzz.h"

/// Reads the journal of an interrupted megalith-preprocess, as it is and with the checksum that its text
/// should have.
MEGALITH_FUZZ_TARGET(preprocess_journal) {
  using namespace megalith;
  const auto read = [](std::string_view text, const Json& identity) {
    const std::filesystem::path path = fuzz::file_of(text, "preprocess_journal/set.resume.json");
    // kUsage: it belongs to a run with other options
    fuzz::accept({ErrorKind::kUsage, ErrorKind::kData},
                 [&] { const PreprocessJournal journal((path.parent_path() / "set").string(), identity); });
  };
  read(bytes, Json::object());
  const Json json = Json::parse(bytes, "journal");
  if (!json.is_object() || json.find("checksum")) return;
  if (const Json* run = json.find("run")) read(sealed(json), *run);
}
