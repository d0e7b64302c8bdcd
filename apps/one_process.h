#pragma once

namespace megalith {

/// For an app that a launcher could be meant to make parallel and that is no rank: refuses the environment of
/// one that started several processes. kUsage. `name`: as for run_app(). Apps that make files for a run
/// ignore it, as the tools that they stand for do: a job's script calls them before it trains.
void require_one_process(const char* name);

}  // namespace megalith
