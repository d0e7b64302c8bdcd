#include "libcore/io/parquet/row_shape.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/io/parquet/json_string.h"

namespace megalith {
namespace {

using Kind = RowNode::Kind;
using parquet::Meaning;
using parquet::Physical;
using parquet::Repetition;

/// A node of the schema with its levels.
struct Tree {
  const SchemaElement* element = nullptr;
  std::string path = {};
  int repetition = 0, definition = 0;  // the highest of its columns above and at this node
  size_t column = 0;                   // of a leaf: its number in the file
  bool wanted = false;                 // whether it or a part of it is read
  std::vector<Tree> children = {};

  bool is_leaf() const { return element->type.has_value(); }
  bool repeats() const { return element->repetition == Repetition::kRepeated; }
  bool is_list() const { return element->meaning == Meaning::kList; }
  bool is_map() const {
    return !is_leaf() && (element->meaning == Meaning::kMap || element->meaning == Meaning::kMapKeyValue);
  }
  bool is_struct() const { return !is_leaf() && !repeats() && !is_list() && !is_map(); }
};

/// Builds the tree of a schema's list.
class SchemaReader {
 public:
  SchemaReader(const ParquetFooter& footer, const ParquetPlace& place)
      : elements_(footer.schema), place_(place) {}

  Tree read() {
    Tree root{.element = &elements_[at_++]};
    read_children(root, 0);
    if (at_ != elements_.size())
      fail_damaged(place_, "found a schema of ", elements_.size(), " parts, of which ", at_, " are used");
    return root;
  }

 private:
  static constexpr int kDeepest = 64;
  static constexpr size_t kMostPaths = size_t{1} << 26;  // bytes of all paths; a million columns take less

  void read_children(Tree& parent, int depth) {
    if (depth == kDeepest) fail_damaged(place_, "found a schema more than ", kDeepest, " deep");
    const int32_t count = parent.element->children;
    if (count < 0 || static_cast<size_t>(count) > elements_.size() - at_)
      fail_damaged(place_, "found a group of ", count, " columns with ", elements_.size() - at_, " left");
    for (int32_t i = 0; i < count; ++i) {
      if (at_ == elements_.size()) fail_damaged(place_, "found a schema that ends too early");
      Tree child{.element = &elements_[at_++],
                 .repetition = parent.repetition,
                 .definition = parent.definition,
                 .wanted = false};
      child.path = parent.path.empty() ? child.element->name : parent.path + "." + child.element->name;
      path_bytes_ += child.path.size();
      if (path_bytes_ > kMostPaths)  // a long name of a group with many parts
        fail_unread(place_, "has columns whose paths take more than ", kMostPaths, " bytes");
      if (child.element->repetition != Repetition::kRequired) ++child.definition;
      if (child.repeats()) ++child.repetition;
      if (child.is_leaf()) child.column = columns_++;
      if (child.is_leaf() && child.element->children > 0)
        fail_damaged(place_, "found a column with parts, ", quote(child.path));
      read_children(child, depth + 1);
      parent.children.push_back(std::move(child));
    }
  }

  const std::vector<SchemaElement>& elements_;
  const ParquetPlace& place_;
  size_t at_ = 0, columns_ = 0, path_bytes_ = 0;
};

void want_all(Tree& tree) {
  tree.wanted = true;
  for (Tree& child : tree.children) want_all(child);
}

/// Marks the node that `names` lead to, and those on the way. Returns whether there is one.
bool want(Tree& tree, const std::string* name, const std::string* end) {
  for (Tree& child : tree.children) {
    if (child.element->name != *name) continue;
    const bool last = name + 1 == end;
    if (last) want_all(child);
    if (!last && !(child.is_struct() && want(child, name + 1, end))) continue;
    child.wanted = true;
    return true;
  }
  return false;
}

void want_keys(Tree& root, const std::vector<std::string>& keys, const std::string& path) {
  constexpr size_t kNamed = 20;
  for (const std::string& key : keys) {
    const std::vector<std::string> names = split(key, '.');
    if (want(root, &key, &key + 1) || want(root, names.data(), names.data() + names.size())) continue;
    std::vector<std::string> columns;
    for (const Tree& child : root.children)
      if (columns.size() < kNamed) columns.push_back(quote(child.element->name));
    fail(ErrorKind::kData, path, ": the Parquet file has no column ", quote(key), "; it has ",
         join(columns, ", "), root.children.size() > kNamed ? ", …" : "");
  }
}

/// Whether JSON has values that mean this: texts, and integers of all sizes (UINT_8 to INT_64 are 11 to 18).
bool is_in_json(Meaning meaning) {
  return meaning == Meaning::kNone || meaning == Meaning::kUtf8 || meaning == Meaning::kEnum ||
         meaning == Meaning::kJson || (meaning >= Meaning::kUint8 && meaning <= Meaning::kInt64);
}

/// The kind of a column's values; nothing if JSON has none.
std::optional<Kind> kind_of(const SchemaElement& leaf) {
  if (!is_in_json(leaf.meaning)) return std::nullopt;
  const bool is_unsigned = leaf.meaning >= Meaning::kUint8 && leaf.meaning <= Meaning::kUint64;
  switch (*leaf.type) {
    case Physical::kBoolean:
      return Kind::kTruth;
    case Physical::kInt32:
    case Physical::kInt64:
      return is_unsigned ? Kind::kUnsigned : Kind::kInteger;
    case Physical::kFloat:
    case Physical::kDouble:
      return Kind::kReal;
    case Physical::kByteArray:
      return Kind::kText;
    default:
      return std::nullopt;
  }
}

/// Makes values of the wanted part of a schema's tree.
class ShapeMaker {
 public:
  explicit ShapeMaker(RowShape& shape) : shape_(shape) {}

  std::optional<RowNode> value(const Tree& tree) {
    if (!tree.repeats()) return value_once(tree);
    // A repeated field that is in no list, as protobuf's: a list that is never null.
    return list(tree, tree.definition - 1, value_once(tree));
  }

  std::optional<RowNode> object(const Tree& tree) {
    RowNode node{.kind = Kind::kObject, .definition = tree.definition, .column = shape_.columns.size()};
    for (const Tree& child : tree.children) {
      if (!child.wanted) continue;
      std::optional<RowNode> member = value(child);
      if (!member) continue;
      member->key = json_string(child.element->name) + ":";
      node.parts.push_back(std::move(*member));
    }
    node.columns = shape_.columns.size() - node.column;
    return node.parts.empty() ? std::nullopt : std::optional(std::move(node));
  }

 private:
  std::optional<RowNode> value_once(const Tree& tree) {
    if (tree.is_leaf()) return leaf(tree);
    if (tree.is_map()) return leave_out(tree, "a map");
    const bool has_repeated = tree.children.size() == 1 && tree.children.front().repeats();
    // A repeated group may be a list in a list of an old writer.
    if (!tree.is_list() || (tree.repeats() && !has_repeated)) return object(tree);
    if (!has_repeated) return leave_out(tree, "a list without a repeated part");
    const Tree& repeated = tree.children.front();
    return list(repeated, tree.definition, element(repeated, tree.element->name));
  }

  /// The element of a list. Old writers have no group of their own around it.
  std::optional<RowNode> element(const Tree& repeated, const std::string& list_name) {
    const std::string& name = repeated.element->name;
    const bool is_group = !repeated.is_leaf() && repeated.children.size() == 1 &&
                          !repeated.children.front().repeats() && name != "array" &&
                          name != list_name + "_tuple";
    return is_group ? value(repeated.children.front()) : value_once(repeated);
  }

  std::optional<RowNode> list(const Tree& repeated, int definition, std::optional<RowNode> element) {
    if (!element) return std::nullopt;
    RowNode node{.kind = Kind::kList,
                 .definition = definition,
                 .filled = repeated.definition,
                 .repetition = repeated.repetition,
                 .column = element->column,
                 .columns = element->columns};
    node.parts.push_back(std::move(*element));
    return node;
  }

  std::optional<RowNode> leaf(const Tree& tree) {
    const std::optional<Kind> kind = kind_of(*tree.element);
    if (!kind) return leave_out(tree, "no text, number or truth");
    shape_.columns.push_back({.number = tree.column,
                              .path = tree.path,
                              .type = *tree.element->type,
                              .repetition = tree.repetition,
                              .definition = tree.definition});
    return RowNode{
        .kind = *kind, .definition = tree.definition, .column = shape_.columns.size() - 1, .columns = 1};
  }

  std::nullopt_t leave_out(const Tree& tree, const char* what) {
    shape_.left_out.push_back(concat(quote(tree.path), " (", what, ")"));
    return std::nullopt;
  }

  RowShape& shape_;
};

}  // namespace

RowShape row_shape(const ParquetFooter& footer, const std::vector<std::string>& keys,
                   const std::string& path) {
  const ParquetPlace place{path, "its schema", 0};
  Tree root = SchemaReader(footer, place).read();
  if (keys.empty())
    want_all(root);
  else
    want_keys(root, keys, path);
  RowShape shape;
  std::optional<RowNode> row = ShapeMaker(shape).object(root);
  if (!row || (!keys.empty() && !shape.left_out.empty()))
    fail(ErrorKind::kData, path, ": of the Parquet file's columns, JSON cannot express ",
         shape.left_out.empty() ? "any, as it has none" : join(shape.left_out, ", "),
         "; wanted texts, numbers, truths, and lists and structs of these");
  shape.row = std::move(*row);
  return shape;
}

}  // namespace megalith
