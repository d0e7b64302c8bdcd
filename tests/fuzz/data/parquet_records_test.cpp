#include "libcore/io/parquet/parquet_records.h"

#include "libcore/io/parquet/parquet_footer.h"
#include "tests/fuzz/fuzz.h"

/// Reads all rows of a Parquet file, as a whole and in parts of row groups. Stops after 4 MiB of JSON.
MEGALITH_FUZZ_TARGET(parquet_records) {
  using namespace megalith;
  const char* const path = fuzz::file_of(bytes, "rows.parquet");
  const auto read = [&](const StreamPart& part) {
    ParquetRecords reader(path, {}, {.bytes = size_t{1} << 16, .refused = size_t{1} << 20}, {}, part);
    size_t all = 0;
    for (LineBatch batch; all < (size_t{4} << 20) && reader.next(batch, [](size_t) {});) all += batch.bytes();
  };
  fuzz::accept({ErrorKind::kData}, [&] { read({}); });
  if (const auto group = row_group_at_or_behind(path, bytes.size() / 2)) {
    fuzz::accept({ErrorKind::kData}, [&] { read({{}, StreamPlace{*group, 0}}); });
    read({{*group, 0}, {}});
  }
}
