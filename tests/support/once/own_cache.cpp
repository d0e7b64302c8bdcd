// The tests' own cache folder, here and in the programs that they start: the user's would be filled by them,
// and what it holds would change what they do.
#include <cstdlib>

#include "tests/support/files.h"

namespace megalith::test {
namespace {

struct OwnCache {
  OwnCache() { setenv("MEGALITH_CACHE_DIR", folder.path().c_str(), 1); }
  const TempDir folder;
};
const OwnCache kOwnCache;  // without a folder for temporary files no test can run

}  // namespace
}  // namespace megalith::test
