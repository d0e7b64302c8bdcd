#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "apps/app.h"
#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/launch/rank_table.h"
#include "libcore/options/cli.h"

namespace megalith {
namespace {

/// The options of hccl_tools.py and merge_hccl.py.
struct RankTableOptions {
  std::vector<std::string> words;
  std::string devices, server, visible;

  template <class V>
  void fields(V&& v) {
    v("merge", words, "merge FILE FILE ...: joins the tables of several servers, in this order.",
      positional(), offers({"merge"}));
    v("device-num", devices, "Devices of this server: \"[0,8)\" are 0 to 7.", metavar("[A,B)"));
    v("visible-devices", visible,
      "The devices themselves; with --device-num the range counts in this list, as in hccl_tools.py.",
      metavar("N,N"));
    v("server-ip", server, "Address at which the other servers reach this one.", metavar("HOST"),
      default_text("this host's name"));
  }
  void validate(Problems& problems) const {
    const bool merges = !words.empty();
    const bool makes = !devices.empty() || !visible.empty() || !server.empty();
    if (merges && words.front() != "merge")
      problems.add("unexpected argument ", quote(words.front()), "; wanted merge FILE FILE ...");
    else if (merges && words.size() < 2)
      problems.add("merge needs files: merge FILE FILE ...");
    if (merges && makes)
      problems.add("merge takes files only; make each server's table first, then merge them");
    if (!merges && devices.empty() && visible.empty())
      problems.missing({"device-num"}, ", such as ", Opt{"device-num"},
                       " \"[0,8)\" (or: merge FILE FILE ...)");
  }
};

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || !*name)
    fail(ErrorKind::kIo, "this host has no name; give --server-ip");
  return name;
}

std::vector<int> visible_devices(const RankTableOptions& options) {
  std::vector<int> devices;
  for (const std::string& word : split(options.visible, ',')) {
    const auto id = parse_int(trim(word));
    if (!id || *id < 0 || *id > 1 << 20)
      fail(ErrorKind::kUsage, "--visible-devices ", quote(options.visible), ": ", quote(word),
           " is not a device number");
    if (std::find(devices.begin(), devices.end(), *id) != devices.end())
      fail(ErrorKind::kUsage, "--visible-devices ", quote(options.visible), ": ", *id,
           " appears twice; give each device once");
    devices.push_back(static_cast<int>(*id));
  }
  return devices;
}

std::vector<int> devices_of(const RankTableOptions& options) {
  if (options.visible.empty()) return parse_devices(options.devices);
  std::vector<int> visible = visible_devices(options);
  if (options.devices.empty()) return visible;
  std::vector<int> devices;
  for (const int place : parse_devices(options.devices)) {
    if (static_cast<size_t>(place) >= visible.size())
      fail(ErrorKind::kUsage, "--device-num ", quote(options.devices), ": --visible-devices ",
           quote(options.visible), " lists ", visible.size(), " devices; give a range within [0,",
           visible.size(), ')');
    devices.push_back(visible[static_cast<size_t>(place)]);
  }
  return devices;
}

std::string run(const RankTableOptions& options) {
  if (!options.words.empty()) return merged_rank_table_text({options.words.begin() + 1, options.words.end()});
  return rank_table_text(devices_of(options), options.server.empty() ? host_name() : options.server);
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("rank-table", [&] {
    RankTableOptions table;
    Options options("rank-table", "Write a rank table (RANK_TABLE_FILE) as Ascend's hccl_tools.py does.");
    options.add("Table", table)
        .epilog(
            "megalith-rank-table --device_num \"[0,2)\" --server_ip node0 > node0.json\n"
            "megalith-rank-table merge node0.json node1.json > rank_table.json\n");
    if (!parse_options(options, argc, argv)) return 0;
    std::cout << run(table);
    return 0;
  });
}
