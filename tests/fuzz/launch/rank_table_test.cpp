#include "libcore/launch/rank_table.h"

#include "tests/fuzz/fuzz.h"

/// Reads a rank table for a run, and for a merge.
MEGALITH_FUZZ_TARGET(rank_table) {
  using namespace megalith;
  const char* const path = fuzz::file_of(bytes, "ranks.json");
  fuzz::accept({ErrorKind::kUsage, ErrorKind::kData}, [&] { read_rank_table(path, 0); });
  fuzz::accept({ErrorKind::kUsage, ErrorKind::kData}, [&] { merged_rank_table_text({path}); });
}
