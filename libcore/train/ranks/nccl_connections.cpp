#include "libcore/train/ranks/nccl_connections.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/train/ranks/nccl_log.h"

namespace megalith {
namespace {

/// What follows `mark`; empty if the line does not have it.
std::string_view after(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  return at == line.npos ? std::string_view() : line.substr(at + mark.size());
}

class ConnectionsLog final : public RunObserver {
 public:
  void step(const StepReport&) override { tell(); }
  void end(const EndReport&) override { tell(); }

 private:
  void tell() {
    if (told_) return;
    told_ = true;
    if (const auto text = kept_nccl_log()) log(nccl_connections_line(*text));
  }

  bool told_ = false;
};

}  // namespace

std::string nccl_connections_line(const std::string& log) {
  std::map<std::string, int> transports;
  std::vector<std::string> networks;
  for (const std::string& line : split(log, '\n')) {
    const std::string_view said = after(line, " NCCL INFO ");
    const bool connects = said.starts_with("Channel ") || said.starts_with("CollNet ");
    if (const std::string_view transport = after(said, " via "); connects && !transport.empty())
      ++transports[std::string(transport)];
    const bool network = said.starts_with("NET/") && !after(said, ": Using").empty();
    const bool is_new = std::ranges::find(networks, said) == networks.end();
    if (network && is_new) networks.emplace_back(said);
  }
  std::vector<std::string> parts;
  for (const auto& [transport, count] : transports) parts.push_back(concat(count, " by ", transport));
  std::string text = parts.empty() ? "its log names none" : join(parts, ", ");
  for (const std::string& network : networks) text += "; " + network;
  return " > NCCL's connections: " + printable(text);
}

std::unique_ptr<RunObserver> nccl_connections_log() {
  return kept_nccl_log() ? std::make_unique<ConnectionsLog>() : nullptr;
}

}  // namespace megalith
