#include "libcore/data/indexed/sidecar.h"

#include <filesystem>

#include "libcore/json/sealed_json.h"
#include "tests/fuzz/fuzz.h"

/// Reads the sidecar of a dataset, as it is and with the checksum that its text should have.
MEGALITH_FUZZ_TARGET(sidecar) {
  using namespace megalith;
  const auto read = [](std::string_view text) {
    const std::filesystem::path path = fuzz::file_of(text, "sidecar/set.json");
    read_sidecar((path.parent_path() / "set").string());
  };
  read(bytes);
  const Json json = Json::parse(bytes, "sidecar");
  if (json.is_object() && !json.find("checksum")) read(sealed(json));
}
