#include "libcore/dialects/mindformers/keys.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/io/files/file.h"
#include "libcore/options/command_line.h"
#include "tests/support/fates.h"

namespace megalith {
namespace {

TEST(RunKeys, HaveOneRowEach) {
  test::expect_one_row_for_each_name(run_keys());
}

TEST(RunKeys, AreRenamedOnlyIfTheyHaveAnOption) {
  for (const RunKey& key : run_keys())
    EXPECT_EQ(key.use == KeyUse::kRenamed, *key.option != '\0') << key.name;
}

/// The table's row that has exactly this path; null if none has.
const RunKey* row_of(const std::string& path) {
  const RunKey* const key = find_fate(run_keys(), path);
  return key && key->name == path ? key : nullptr;
}

/// A row of the page's table: the paths in its first cell, and the cell that states their fate.
struct PageRow {
  std::vector<std::string> paths;
  std::string fate;
};

/// The path of a key that a cell names. In a cell, later keys may be in the group of the first one.
std::string path_in(const std::string& group, const std::string& name) {
  const std::string path = group.empty() ? name : group + "." + name;
  return row_of(path) ? path : name;
}

/// The paths that a cell names in backticks: `group.key`, `key` of the same group; "`group`: `key`"; or
/// "`key` of it", which means the model's.
std::vector<std::string> paths_of(const std::string& cell) {
  const bool of_model = cell.ends_with("of it"), headed = cell.find("`: `") != std::string::npos;
  std::string group = of_model ? "model.model_config" : "";
  std::vector<std::string> paths;
  const std::vector<std::string> parts = split(cell, '`');
  for (size_t i = 1; i < parts.size(); i += 2) {
    const std::string name = parts[i].substr(0, parts[i].find(':'));
    if (headed && i == 1)
      group = name;
    else
      paths.push_back(path_in(group, name));
    if (const size_t dot = paths.empty() ? std::string::npos : paths.back().rfind('.');
        dot != std::string::npos && !of_model)
      group = paths.back().substr(0, dot);
  }
  return paths;
}

std::vector<PageRow> page_rows() {
  std::vector<PageRow> rows;
  std::istringstream text(read_file(MEGALITH_SOURCE_DIR "/docs/from-mindformers.md"));
  bool within = false;
  for (std::string line; std::getline(text, line);) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 4)
      within = false;
    else if (trim(cells[1]) == "key" || line.starts_with("|---"))
      within = within || trim(cells[1]) == "key";
    else if (within)
      rows.push_back({paths_of(std::string(trim(cells[1]))), std::string(trim(cells[2]))});
  }
  return rows;
}

/// The row that decides on a path of the page; "group.*" stands for the rest of a group, and "group" for all
/// of it.
const RunKey* decides(const std::string& path) {
  if (path.ends_with(".*")) return find_fate(run_keys(), path.substr(0, path.size() - 1) + "unheard-of");
  const RunKey* const key =
      find_fate(run_keys(), path.ends_with('*') ? path.substr(0, path.size() - 1) : path);
  return key ? key : find_fate(run_keys(), path + ".unheard-of");
}

/// Whether training has an option of this name, so that the key needs no row.
bool is_option(const std::string& path) {
  PretrainConfig config;
  OptionTable table;
  const std::vector<Field> fields = fields_of(config);
  for (const Field& field : fields) table.add(field);
  return table.find(path) || path == "run_mode";
}

void expect_obeyed(const std::string& path) {
  if (path.ends_with(".*")) {  // the page means those keys of the group that have an effect
    const std::string head = path.substr(0, path.size() - 1);
    EXPECT_TRUE(std::any_of(run_keys().begin(), run_keys().end(), [&](const RunKey& key) {
      return key.name.starts_with(head) && key.use == KeyUse::kCombined;
    }));
    return;
  }
  const RunKey* const key = decides(path);
  const bool used = key && (key->use == KeyUse::kRenamed || key->use == KeyUse::kCombined);
  EXPECT_TRUE(used ? key->remedy.empty() : !key && is_option(path));
}

void expect_fate(const std::string& path, const std::string& stated) {
  SCOPED_TRACE(path + " is " + stated);
  if (stated.starts_with("obeyed") || stated.starts_with("predict: obeyed")) return expect_obeyed(path);
  const RunKey* const key = decides(path);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->remedy.empty(), stated == "named");
  if (stated == "named") {
    EXPECT_TRUE(key->use == KeyUse::kNamed || key->use == KeyUse::kForeign);
  } else {
    EXPECT_NE(stated.find("refused"), std::string::npos);
  }
}

TEST(RunKeys, AreAsThePageSays) {
  const std::vector<PageRow> rows = page_rows();
  ASSERT_GT(rows.size(), 40U);
  for (const PageRow& row : rows)
    for (const std::string& path : row.paths) expect_fate(path, row.fate);
}

}  // namespace
}  // namespace megalith
