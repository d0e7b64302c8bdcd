#include "tests/support/lossy_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "libcore/io/files/file.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

std::string name(const std::string& path) {
  return fs::path(path).filename().string();
}

}  // namespace

LossyDisk::LossyDisk(const std::string& root) : root_(root), top_(load(root)) {}

std::shared_ptr<LossyDisk::Node> LossyDisk::load(const std::string& path) {
  auto node = std::make_shared<Node>(Node{.folder = fs::is_directory(path)});
  if (!node->folder) node->data = node->synced_data = read_file(path);
  if (node->folder)
    for (const auto& child : fs::directory_iterator(path))
      node->entries[child.path().filename().string()] = load(child.path().string());
  node->synced_entries = node->entries;
  return node;
}

void LossyDisk::apply(const FileCall& call) {
  switch (call.kind) {
    case FileCall::kCreate:
      entry(call.path) = std::make_shared<Node>();
      break;
    case FileCall::kMakeFolder:
      entry(call.path) = std::make_shared<Node>(Node{.folder = true});
      break;
    case FileCall::kWrite: {
      std::string& data = entry(call.path)->data;
      data.resize(std::max(data.size(), call.offset + call.bytes.size()));
      data.replace(call.offset, call.bytes.size(), call.bytes);
      break;
    }
    case FileCall::kSync: {
      Node& node = call.path == root_ ? *top_ : *entry(call.path);
      node.synced_data = node.data;
      node.synced_entries = node.entries;
      break;
    }
    case FileCall::kLink:
      entry(call.other) = entry(call.path);
      break;
    case FileCall::kRename: {
      const auto moved = entry(call.path);
      parent(call.path).entries.erase(name(call.path));
      entry(call.other) = moved;
      break;
    }
    case FileCall::kExchange:
      std::swap(entry(call.path), entry(call.other));
      break;
    case FileCall::kRemove:
      parent(call.path).entries.erase(name(call.path));
      break;
  }
}

void LossyDisk::restore(const std::string& to, const std::function<bool()>& kept) const {
  fs::remove_all(to);
  write(*top_, to, kept);
}

LossyDisk::Node& LossyDisk::parent(const std::string& path) {
  Node* node = top_.get();
  const fs::path inner = fs::path(path).lexically_relative(root_);
  for (const fs::path& step : inner.parent_path()) node = node->entries.at(step.string()).get();
  return *node;
}

std::shared_ptr<LossyDisk::Node>& LossyDisk::entry(const std::string& path) {
  if (path.starts_with("nameless-")) return nameless_[path];
  return parent(path).entries[name(path)];
}

void LossyDisk::write(const Node& node, const std::string& to, const std::function<bool()>& kept) {
  if (!node.folder) {
    std::ofstream(to, std::ios::binary) << node.synced_data;
    return;
  }
  fs::create_directory(to);
  std::set<std::string> names;
  for (const auto* entries : {&node.entries, &node.synced_entries})
    for (const auto& [child, below] : *entries) names.insert(child);
  for (const std::string& child : names) {
    const auto& entries = kept() ? node.entries : node.synced_entries;
    if (const auto below = entries.find(child); below != entries.end())
      write(*below->second, (fs::path(to) / child).string(), kept);
  }
}

}  // namespace megalith::test
