// libmegalith_yaml.so: see config_file.h.

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/small_json.h"
#include "libcore/options/config_file.h"

namespace megalith {

namespace {
// maximum depth of nested maps; without it, an anchor that contains itself would never end
constexpr int kDeepest = 32;
// The most keys and values in a file: hundreds of times as many as real files have. Each takes about 500
// bytes in yaml-cpp.
constexpr size_t kMostValues = size_t{1} << 18;

[[noreturn]] void refuse_many(const std::string& path) {
  fail(ErrorKind::kData, path, ": has more than ", kMostValues,
       " keys and values; it is not a settings file");
}

// Counts a document's nodes while it is scanned, before memory is allocated for them.
class NodeCount : public YAML::EventHandler {
 public:
  explicit NodeCount(const std::string& path) : path_(path) {}
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override { count(); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { count(); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {
    count();
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    count();
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    count();
  }
  void OnMapEnd() override {}

 private:
  void count() {
    if (++nodes_ > kMostValues) refuse_many(path_);
  }
  const std::string& path_;
  size_t nodes_ = 0;
};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  std::vector<FileOption> read() {
    const std::string text = read_small(path_);
    try {
      count_nodes(text);
      const YAML::Node root = YAML::Load(text);
      if (root.IsDefined() && !root.IsNull()) read_map(root, {}, 0);
    } catch (const YAML::Exception& error) {
      fail(ErrorKind::kData, place(error.mark), ':', error.mark.column + 1, ": ", error.msg, "; wanted YAML");
    }
    return std::move(options_);
  }

 private:
  void count_nodes(const std::string& text) const {
    std::istringstream stream(text);
    NodeCount handler(path_);
    YAML::Parser(stream).HandleNextDocument(handler);
  }

  std::string place(const YAML::Mark& mark) const { return concat(path_, ':', mark.line + 1); }

  void read_map(const YAML::Node& map, const std::string& group, int depth) {
    if (!map.IsMap())
      fail(ErrorKind::kData, place(map.Mark()), ": wanted a map of options, such as \"num-layers: 12\"");
    if (depth > kDeepest)
      fail(ErrorKind::kData, place(map.Mark()), ": maps are nested more than ", kDeepest, " deep");
    for (const auto& entry : map) {
      if (!entry.first.IsScalar())
        fail(ErrorKind::kData, place(entry.first.Mark()), ": wanted the name of an option before the \":\"");
      const std::string inner =
          group.empty() ? entry.first.Scalar() : concat(group, '.', entry.first.Scalar());
      if (entry.second.IsMap())
        read_map(entry.second, inner, depth + 1);
      else if (holds_maps(entry.second))
        for (const YAML::Node& element : entry.second) read_map(element, inner, depth + 1);
      else
        options_.push_back(read_value(entry.first, entry.second, group));
    }
  }

  static bool holds_maps(const YAML::Node& value) {
    return value.IsSequence() && value.size() > 0 &&
           std::all_of(value.begin(), value.end(), [](const YAML::Node& element) { return element.IsMap(); });
  }

  FileOption read_value(const YAML::Node& key, const YAML::Node& value, const std::string& group) {
    // Nested anchors can double the number of values at each level.
    if (++taken_ > kMostValues) refuse_many(path_);
    FileOption option{.key = key.Scalar(), .group = group, .words = {}, .where = place(key.Mark())};
    if (value.IsSequence()) {
      for (const YAML::Node& word : value) {
        if (!word.IsScalar())
          fail(ErrorKind::kData, place(word.Mark()), ": wanted a word in the list of ", quote(option.key));
        option.words.push_back(word.Scalar());
        if (++taken_ > kMostValues) refuse_many(path_);
      }
    } else if (value.IsScalar()) {
      option.words.push_back(value.Scalar());
    } else {
      option.is_null = true;
    }
    return option;
  }

  std::string path_;
  std::vector<FileOption> options_;
  size_t taken_ = 0;  // number of values; those of an anchor count each time that it is used
};
}  // namespace

}  // namespace megalith

extern "C" {

/// Sets `options` to the options in the file at `path`. Throws kNoInput, kData.
__attribute__((visibility("default"))) void megalith_read_yaml(const std::string& path,
                                                               std::vector<megalith::FileOption>& options) {
  options = megalith::Reader(path).read();
}
}
