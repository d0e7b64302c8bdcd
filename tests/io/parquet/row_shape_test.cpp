#include "libcore/io/parquet/row_shape.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

using parquet::Meaning;
using parquet::Physical;
using parquet::Repetition;
using Kind = RowNode::Kind;

SchemaElement text(const std::string& name, Repetition repetition) {
  return {.type = Physical::kByteArray, .repetition = repetition, .meaning = Meaning::kUtf8, .name = name};
}
SchemaElement group(const std::string& name, Repetition repetition, int32_t children,
                    Meaning meaning = Meaning::kNone) {
  return {.repetition = repetition, .meaning = meaning, .name = name, .children = children};
}

RowShape shape_of(std::vector<SchemaElement> schema, const std::vector<std::string>& keys = {}) {
  return row_shape({.schema = std::move(schema), .groups = {}, .begins = {}}, keys, "f.parquet");
}

TEST(RowShape, HasLevelsOfTheSchema) {
  // Dremel's document: links.forward repeats, name repeats and holds a list of language
  const RowShape shape =
      shape_of({group("document", Repetition::kRequired, 2), group("links", Repetition::kOptional, 1),
                text("forward", Repetition::kRepeated), group("name", Repetition::kRepeated, 1),
                group("language", Repetition::kRepeated, 1), text("code", Repetition::kRequired)});
  ASSERT_EQ(shape.columns.size(), 2U);
  EXPECT_EQ(shape.columns[0].path, "links.forward");
  EXPECT_EQ(shape.columns[0].repetition, 1);
  EXPECT_EQ(shape.columns[0].definition, 2);
  EXPECT_EQ(shape.columns[1].path, "name.language.code");
  EXPECT_EQ(shape.columns[1].repetition, 2);
  EXPECT_EQ(shape.columns[1].definition, 2);
  const RowNode& links = shape.row.parts[0];
  EXPECT_EQ(links.key, "\"links\":");
  EXPECT_EQ(links.parts[0].kind, Kind::kList);
  EXPECT_EQ(links.parts[0].definition, 1) << "a repeated field is never null in its parent";
  EXPECT_EQ(links.parts[0].filled, 2);
}

/// The element of the one list of a schema, whose repeated part is what follows.
RowNode element_of(std::vector<SchemaElement> repeated) {
  repeated.insert(repeated.begin(), {group("root", Repetition::kRequired, 1),
                                     group("tags", Repetition::kOptional, 1, Meaning::kList)});
  const RowShape shape = shape_of(std::move(repeated));
  const RowNode& list = shape.row.parts.at(0);
  EXPECT_EQ(list.kind, Kind::kList);
  EXPECT_EQ(list.definition, 1);
  EXPECT_EQ(list.filled, 2);
  return list.parts.at(0);
}

// LogicalTypes.md, "Backward-compatibility rules" of lists, in their order.
TEST(RowShape, ReadsListsOfOldWriters) {
  EXPECT_EQ(element_of({text("element", Repetition::kRepeated)}).kind, Kind::kText);
  EXPECT_EQ(element_of({group("element", Repetition::kRepeated, 2), text("a", Repetition::kRequired),
                        text("b", Repetition::kRequired)})
                .parts.size(),
            2U);
  EXPECT_EQ(element_of({group("array", Repetition::kRepeated, 1), text("a", Repetition::kRequired)}).kind,
            Kind::kObject);
  EXPECT_EQ(
      element_of({group("tags_tuple", Repetition::kRepeated, 1), text("a", Repetition::kRequired)}).kind,
      Kind::kObject);
  EXPECT_EQ(
      element_of({group("list", Repetition::kRepeated, 1), text("element", Repetition::kOptional)}).kind,
      Kind::kText);
}

// The same rules: a list of lists of parquet-avro, and a repeated group whose one part repeats.
TEST(RowShape, ReadsListsInListsOfOldWriters) {
  const RowNode inner = element_of(
      {group("array", Repetition::kRepeated, 1, Meaning::kList), text("array", Repetition::kRepeated)});
  EXPECT_EQ(inner.kind, Kind::kList);
  EXPECT_EQ(inner.definition, 2) << "it is never null";
  EXPECT_EQ(inner.filled, 3);
  EXPECT_EQ(inner.repetition, 2);
  EXPECT_EQ(inner.parts.at(0).kind, Kind::kText);
  const RowNode object =
      element_of({group("element", Repetition::kRepeated, 1), text("a", Repetition::kRepeated)});
  EXPECT_EQ(object.kind, Kind::kObject);
  EXPECT_EQ(object.parts.at(0).kind, Kind::kList);
}

TEST(RowShape, PrefersAColumnToAPath) {
  const std::vector<SchemaElement> schema = {
      group("root", Repetition::kRequired, 2), group("meta", Repetition::kOptional, 2),
      text("text", Repetition::kOptional), text("other", Repetition::kOptional),
      text("meta.text", Repetition::kOptional)};
  EXPECT_EQ(shape_of(schema, {"meta.text"}).columns.at(0).number, 2U);
  EXPECT_EQ(shape_of(schema, {"meta.other"}).columns.at(0).number, 1U);
  EXPECT_EQ(shape_of(schema, {"meta"}).columns.size(), 2U);
}

TEST(RowShape, RefusesDamagedSchemas) {
  EXPECT_THROW(shape_of({group("root", Repetition::kRequired, 2), text("a", Repetition::kRequired)}), Error);
  EXPECT_THROW(shape_of({group("root", Repetition::kRequired, -1)}), Error);
  EXPECT_THROW(shape_of({group("root", Repetition::kRequired, 0), text("a", Repetition::kRequired)}), Error);
  std::vector<SchemaElement> deep(100, group("g", Repetition::kOptional, 1));
  deep.push_back(text("a", Repetition::kRequired));
  EXPECT_THROW(shape_of(deep), Error);
  std::vector<SchemaElement> wide = {group("r", Repetition::kRequired, 1),
                                     group(std::string(1 << 16, 'g'), Repetition::kOptional, 1100)};
  wide.resize(wide.size() + 1100, text("a", Repetition::kRequired));
  EXPECT_THROW(shape_of(wide), Error) << "its paths take 72 MB";
}

}  // namespace
}  // namespace megalith
