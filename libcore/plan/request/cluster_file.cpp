#include "libcore/plan/request/cluster_file.h"

#include <cmath>
#include <functional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/options/config_file.h"

namespace megalith {
namespace {

/// One line of the file. If the command line overrides it, the line is checked, but it returns no value.
class Line {
 public:
  Line(const FileOption& line, bool taken) : line_(line), taken_(taken) {}

  std::optional<std::string> name() const {
    check(line_.words.size() == 1, "a name");
    return unless_taken(line_.words.front());
  }
  std::optional<int> devices() const {
    const auto count = line_.words.size() == 1 ? parse_int(line_.words.front()) : std::nullopt;
    check(count && *count >= 1 && *count <= ParallelConfig::kMaxRanks, "a number of devices");
    return unless_taken(static_cast<int>(*count));
  }
  std::optional<double> amount() const {
    const auto number = line_.words.size() == 1 ? parse_double(line_.words.front()) : std::nullopt;
    check(number && *number > 0 && std::isfinite(*number), "a number above 0");
    return unless_taken(*number);
  }
  std::string source(int count) const { return concat(line_.key, ' ', count, " (", line_.where, ')'); }

 private:
  template <class T>
  std::optional<T> unless_taken(T value) const {
    return taken_ ? std::nullopt : std::optional(std::move(value));
  }
  void check(bool valid, const char* wanted) const {
    if (!valid)
      fail(ErrorKind::kData, line_.where, ": ", line_.key, " is ", quote(join(line_.words, " ")), ", wanted ",
           wanted);
  }

  const FileOption& line_;
  bool taken_;
};

void set(auto& value, const auto& told) {
  if (told) value = *told;
}

void set_size(int& size, std::string& source, const Line& line) {
  if (const auto count = line.devices()) {
    size = *count;
    source = line.source(size);
  }
}

}  // namespace

void take_cluster_file(PlanCommand& command, GivenWorld& world) {
  PlanOptions& plan = command.plan;
  const std::pair<const char*, std::function<void(const Line&)>> known[] = {
      {"gpu", [&](const Line& line) { set(plan.gpu, line.name()); }},
      {"world-size", [&](const Line& line) { set_size(world.world, world.world_source, line); }},
      {"local-world-size", [&](const Line& line) { set_size(world.local, world.local_source, line); }},
      {"link-domain", [&](const Line& line) { set(plan.link_domain, line.devices()); }},
      {"network-gbps", [&](const Line& line) { set(plan.network_gbps, line.amount()); }},
      {"device-memory-gb", [&](const Line& line) { set(plan.memory_gb, line.amount()); }},
      {"gpu-hour-price", [&](const Line& line) { set(plan.gpu_hour, line.amount()); }}};
  for (const FileOption& option : read_config_file(plan.cluster)) {
    const auto* const found = std::find_if(std::begin(known), std::end(known),
                                           [&](const auto& entry) { return option.key == entry.first; });
    if (found == std::end(known))
      fail(ErrorKind::kData, option.where, ": ", quote(option.key),
           " does not describe a cluster; known are gpu, world-size, local-world-size, link-domain, "
           "network-gbps, device-memory-gb, gpu-hour-price");
    found->second(Line(option, command.gives(option.key)));
  }
}

}  // namespace megalith
