#include <string>

#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/hash/xxh64.h"
#include "libcore/text/saved_tokenizer.h"
#include "tests/fuzz/fuzz.h"

/// Reads the index of a checkpoint, as it is and with the checksum that its text should have.
MEGALITH_FUZZ_TARGET(checkpoint_index) {
  using namespace megalith;
  fuzz::accept({ErrorKind::kData}, [&] { parse_index(bytes, "index.json"); });
  fuzz::accept({ErrorKind::kData}, [&] { parse_index_part(bytes, "part.json"); });
  const std::string body(bytes.substr(0, bytes.rfind(kIndexChecksumMember)));
  parse_index(concat(body, kIndexChecksumMember, '"', hex64(xxh64(body)), "\"\n}\n"), "index.json");
}
