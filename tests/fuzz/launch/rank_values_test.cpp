#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/parallel/exchange.h"
#include "tests/fuzz/fuzz.h"

namespace megalith {
namespace {

struct Report {
  bool ready = false;
  std::string text = {};
  std::vector<int32_t> numbers = {};
  template <class V>
  void members(V&& visit) {
    visit(ready, text, numbers);
  }
};

}  // namespace
}  // namespace megalith

/// Unpacks what another rank sent: the list that rank 0 distributes, and in it the values of all ranks.
MEGALITH_FUZZ_TARGET(rank_values) {
  using namespace megalith;
  fuzz::accept({ErrorKind::kData}, [&] { (void)unpacked<std::vector<Report>>(bytes); });
  const auto all = unpacked<std::vector<std::string>>(bytes);
  fuzz::accept({ErrorKind::kComm}, [&] { (void)unpacked_all<Report>(all); });
}
