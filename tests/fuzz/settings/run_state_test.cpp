#include "libcore/checkpoint/loss_history.h"
#include "libcore/json/json.h"
#include "libcore/train/saves/start_point.h"
#include "tests/fuzz/fuzz.h"

/// Reads how far a run had come, in the JSON that its checkpoints (in a .pth, too) keep.
MEGALITH_FUZZ_TARGET(run_state) {
  using namespace megalith;
  const Json run = Json::parse(bytes, "megalith");
  fuzz::accept({ErrorKind::kData}, [&] {
    StartPoint start;
    take_state(start, run["state"], "optimizer_000001.pth");
  });
  (void)LossHistory::from_json(run["losses"], "losses");
}
